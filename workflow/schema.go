package workflow

import (
	"reflect"

	"github.com/pawlhq/pawl/internal/schemagen"
)

// Schema is the JSON Schema (draft 2020-12) of the step's payload. It says what
// Decode accepts, as far as JSON Schema has words for it: a field is required
// where its zero value is not valid, any other may be missing or null, and no
// other fields are allowed. A jsonschema tag on a field is its description.
//
// The schema is computed once. The caller must not change it.
func (s *Step) Schema() ([]byte, error) { return s.body.schema() }

func (t *Transition[D, P]) schema() ([]byte, error) { return t.schemaOf() }

func (t *Transition[D, P]) payloadType() reflect.Type { return reflect.TypeFor[P]() }

func (t *Transition[D, P]) buildSchema() ([]byte, error) {
	schema, err := schemagen.Of(reflect.TypeFor[P](), validate)
	if err != nil {
		return nil, err
	}
	return schemagen.Text(schema)
}
