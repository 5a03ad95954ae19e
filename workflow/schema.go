package workflow

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is the JSON Schema (draft 2020-12) of the step's payload. It says what
// the Go type and its validate tags say, as far as JSON Schema can.
func (s *Step) Schema() ([]byte, error) { return s.body.schema() }

func (t *Transition[D, P]) payloadName() string { return reflect.TypeFor[P]().String() }

func (t *Transition[D, P]) schema() ([]byte, error) {
	if reflect.TypeFor[P]().Kind() != reflect.Struct {
		return nil, fmt.Errorf("it must be a struct")
	}
	schema, err := jsonschema.For[P](nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(schema)
}
