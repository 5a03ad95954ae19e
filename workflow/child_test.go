package workflow

import (
	"reflect"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
)

func TestSpawnedChildrenArePartOfTheOutcome(t *testing.T) {
	var ids []uuid.UUID
	s := ledgerStep(t, func(c *Call, _ *ledger, e entry) error {
		ids = append(ids, c.Spawn(Child{Workflow: "claim", Transition: "file", Payload: e.By, End: "filed"}))
		e.By["a"]++
		ids = append(ids, c.Spawn(Child{Workflow: "note", Transition: "write", BusinessKey: "n-1"}))
		return nil
	})
	out, err := s.Run(someFacts, nil, decoded(t, s, `{"by":{"b":2,"a":1}}`))
	want := []Spawned{{ids[0], "claim", "file", "", []byte(`{"a":1,"b":2}`), "filed"}, {ids[1], "note", "write", "n-1", []byte(`{}`), ""}}
	assert.Truef(t, err == nil && reflect.DeepEqual(out.Spawns, want), "%+v, %v", out.Spawns, err)
	assert.Truef(t, ids[0] != uuid.Nil && ids[1] == InstanceID(someFacts.Tenant, "note", "n-1"), "the ids are %v", ids)
}

// The completion of a child is an ordinary payload, except for members that an earlier build of the child wrote.
func TestEndedIsAPayload(t *testing.T) {
	s := startWith[Ended[namedPayload]](t)
	schema := schemaOf(t, s)
	const id = "01936b0e-0000-7000-8000-000000000001"
	ended := `{"child":"` + id + `","workflow":"claim","state":"paid","data":{"name":"c-1"}}`
	assert.NoError(t, accepts(t, schema, ended))
	for _, bad := range []string{`{"child":5}`, `{"state":{}}`, `{"data":{"name":[]}}`, `{"workflow":1}`} {
		assert.Errorf(t, accepts(t, schema, bad), "the schema takes %s", bad)
		if _, err := s.Decode([]byte(bad)); CodeOf(err) != InvalidPayload {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := s.Decode([]byte(`{"child":"01936b0e"}`)); CodeOf(err) != InvalidPayload {
		t.Errorf("a shortened UUID: %v", err)
	}
	for _, text := range []string{ended,
		`{"child":"` + id + `","workflow":"claim","state":"paid","data":{"name":"c-1","gone":[1]},"later":1}`} {
		_, p, err := s.Typed(nil, decoded(t, s, text))
		want := Ended[namedPayload]{Child: uuid.MustParse(id), Workflow: "claim", State: "paid", Data: namedPayload{"c-1"}}
		assert.Truef(t, err == nil && p == want, "%+v, %v", p, err)
	}
	// Nothing that it shares is lost when it is decoded again.
	lists := startWith[Ended[ledger]](t)
	_, p, err := lists.Typed(nil, decoded(t, lists, `{"data":{"lines":[1],"gone":1}}`))
	e, ok := p.(Ended[ledger])
	assert.Truef(t, err == nil && ok && len(e.Data.Lines) == 1, "%+v, %v", p, err)
}
