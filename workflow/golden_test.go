package workflow

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/schemagen"
)

// Update is the flag that makes the tests write the golden files in testdata.
var Update = flag.Bool("update", false, "write the golden files in testdata")

// CompareGolden compares a text with a golden file.
func CompareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *Update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equalf(t, string(want), got, "%s differs from", path)
}

// DescribeFrozen lists everything of a workflow that databases and documents store: its hash, the members of its data and
// results, and the schema of each payload.
func DescribeFrozen(t *testing.T, w *Workflow) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d\nhash %s\n", w.Name, w.Version, w.Hash)
	for _, path := range slices.Sorted(maps.Keys(w.members)) {
		fmt.Fprintf(&b, "member %q %s\n", path, w.members[path])
	}
	for _, s := range w.Steps {
		schema, err := s.Schema()
		require.NoError(t, err)
		fmt.Fprintf(&b, "step %s\nmeaning %s\nschema %s\n", s.Name, schemagen.Meaning(s.body.payloadType()), schema)
	}
	return b.String()
}

func frozen[P any](t *testing.T) string {
	t.Helper()
	name := reflect.TypeFor[P]().String()
	w, err := Define("w", 1, Start("start", "done", func(*Call, *P, P) error { return nil })).Final("done").Build()
	require.NoError(t, err, name)
	return "# " + name + "\n" + DescribeFrozen(t, w)
}

func TestSchemasAndHashesAreFrozen(t *testing.T) {
	var b strings.Builder
	for _, f := range []func(*testing.T) string{
		frozen[None], frozen[plainPayload], frozen[requiredPayload], frozen[boundsPayload], frozen[choicePayload],
		frozen[nestedPayload], frozen[embeddedPayload], frozen[embeddedPointerPayload], frozen[embeddedMapPayload],
		frozen[namedEmbeddedPayload], frozen[textPayload], frozen[betweenPayload], frozen[cornerPayload],
		frozen[representative], frozen[order], frozen[orderAgain], frozen[placeOrder], frozen[namedPayload], frozen[shapesPayload],
	} {
		b.WriteString(f(t))
	}
	b.WriteString(DescribeFrozen(t, fullWorkflow(t)))
	CompareGolden(t, "testdata/schemas.txt", b.String())
}

// shapesPayload has what the other payloads lack: every size of number, quoted, behind pointers and as names, and members that
// shadow each other.
type shapesPayload struct {
	I8      int8                       `json:"i8"`
	I16     *int16                     `json:"i16" validate:"omitempty,min=2"`
	I32     int32                      `json:"i32" validate:"required"`
	I64     int64                      `json:"i64"`
	U8      uint8                      `json:"u8"`
	U16     uint16                     `json:"u16"`
	U32     uint32                     `json:"u32" validate:"max=7"`
	U64     uint64                     `json:"u64"`
	U       uint                       `json:"u"`
	F32     float32                    `json:"f32" validate:"lt=1"`
	F64     **float64                  `json:"f64"`
	Q8      int8                       `json:"q8,string"`
	QU      uint64                     `json:"qu,string" validate:"required"`
	QF      float32                    `json:"qf,string"`
	Bytes3  [3]byte                    `json:"bytes3" validate:"required"`
	Bytes4  [4]byte                    `json:"bytes4"`
	Grid    [2][]*int8                 `json:"grid" validate:"required"`
	ByInt   map[int8]uint8             `json:"by_int"`
	ByUint  map[uint16]map[string]bool `json:"by_uint" validate:"dive,required,dive,keys,alpha,endkeys,eq=true"`
	ByText  map[time.Time]string       `json:"by_text"`
	Struct  address                    `json:"struct" validate:"required"`
	Texts   [2]string                  `json:"texts" validate:"required,dive,oneof=a b"`
	Ref     *address                   `json:"ref" validate:"required"`
	Unused  string                     `json:"-"`
	Renamed string                     `json:"a b~c" jsonschema:"an unusual name"`
	Base
	*Base2
	shadowed
	Rest map[string][]int16 `json:",embed"`
}

type shadowed struct {
	Source string `json:"Source"`
	I8     int16  `json:"i8"`
}
