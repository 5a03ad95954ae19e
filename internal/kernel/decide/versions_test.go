package decide

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type measured struct {
	Grams int `json:"grams" validate:"min=1"`
}

type weighed struct {
	Kilos float64 `json:"kilos" validate:"gt=0"`
	Scale string  `json:"scale" validate:"required"`
}

type parcel struct {
	Grams int `json:"grams"`
}

// Three versions of one workflow: "weigh" changes its payload from the first to
// the second, the third calls it "measure" and creates by "accept".
func parcels(t testing.TB) (v1, v2, v3 *workflow.Workflow) {
	t.Helper()
	begin := func(*workflow.Call, *parcel, workflow.None) error { return nil }
	byKilos := func(_ *workflow.Call, d *parcel, p weighed) error { d.Grams = int(p.Kilos * 1000); return nil }
	key := func(filing) string { return "P-1" }
	v1 = built(t, workflow.Define("parcel", 1,
		workflow.Start("take", "here", begin),
		workflow.On("weigh", workflow.From("here"), "weighed", func(_ *workflow.Call, d *parcel,
			p measured) error {
			d.Grams = p.Grams
			return nil
		}).
			Hook("some SQL")).Final("weighed"))
	v2 = built(t, workflow.Define("parcel", 2,
		workflow.Start("take", "here", begin),
		workflow.On("weigh", workflow.From("here"), "weighed", byKilos)).Final("weighed"))
	v3 = built(t, workflow.Define("parcel", 3,
		workflow.Start("accept", "here", func(*workflow.Call, *parcel, filing) error { return nil }).BusinessKey(key).RefuseExisting(),
		workflow.On("measure", workflow.From("here"), "weighed", byKilos)).Final("weighed"))
	return v1, v2, v3
}

func TestInstanceKeepsVersion(t *testing.T) {
	t.Parallel()
	v1, v2, v3 := parcels(t)
	for _, tt := range []struct {
		name, transition, payload string
		on                        *workflow.Workflow
		want                      workflow.Code
	}{
		{"the first version's payload on the first", "weigh", `{"grams":500}`, v1, ""},
		{"the second's on the second", "weigh", `{"kilos":0.5,"scale":"A"}`, v2, ""},
		{"the second's on the first", "weigh", `{"kilos":0.5,"scale":"A"}`, v1, workflow.InvalidPayload},
		{"the first's on the second", "weigh", `{"grams":500}`, v2, workflow.InvalidPayload},
		{"a name that is gone, on the newest", "weigh", `{"grams":500}`, v3, workflow.TransitionNotFound},
		{"a new name on the first", "measure", `{"kilos":0.5,"scale":"A"}`, v1, workflow.TransitionNotFound},
		{"a new name on the newest", "measure", `{"kilos":0.5,"scale":"A"}`, v3, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := transitions.Command{Workflow: "parcel", Transition: tt.transition, Key: "k", Instance: madeUp, Payload: []byte(tt.payload)}
			p, err := Prepare(c, v3, fixedID, v2, v1)
			require.NoError(t, err)
			inst := &transitions.Instance{Tenant: "default", ID: madeUp, Workflow: "parcel", Definition: tt.on.Version, State: "here", Version: 1,
				Data: []byte(`{}`)}
			d := Decide(p, tt.on, inst, noon)
			if tt.want != "" {
				wantCode(t, d.Err, tt.want)
				checkRefusal(t, d, inst)
				return
			}
			assert.Truef(t, d.Err == nil && string(d.After.Data) == `{"grams":500}` && d.After.Definition == tt.on.Version,
				"got %+v, %v", d.After, d.Err)
		})
	}
}

func TestPrepareTakesWhatAnyVersionTakes(t *testing.T) {
	t.Parallel()
	v1, v2, v3 := parcels(t)
	prepare := func(transition, payload string, w *workflow.Workflow, older ...*workflow.Workflow) (*Prepared, error) {
		id := madeUp
		if transition == "take" || transition == "accept" {
			id = uuid.Nil
		}
		return Prepare(transitions.Command{Workflow: "parcel", Transition: transition, Key: "k", Instance: id, Payload: []byte(payload)}, w,
			fixedID, older...)
	}
	_, err := prepare("weigh", `{"tons":1}`, v2, v1)
	wantCode(t, err, workflow.InvalidPayload)
	assert.Contains(t, reasonsText(err), "/tons", "the caller is told")
	_, err = prepare("weigh", `{"kilos":-1,"scale":"A"}`, v2, v1)
	if text := reasonsText(err); !strings.Contains(text, "/kilos") || strings.Contains(text, "/scale") {
		t.Errorf("the caller is told %s, which is not what the newest version says", text)
	}
	_, err = prepare("fly", `{}`, v3, v2, v1)
	wantCode(t, err, workflow.TransitionNotFound)
	_, err = prepare("take", `{}`, v3, v2, v1)
	wantCode(t, err, workflow.TransitionNotFound) // only the newest version creates
	p, err := prepare("weigh", `{"kilos":1,"scale":"A"}`, v3, v2, v1)
	assert.Truef(t, err == nil && p.Definition == v2, "got %+v, %v, want it decoded by version 2", p, err)
	assert.False(t, err == nil && !p.Hook, "version 1 runs SQL with it, which Prepare does not say")
	p, err = prepare("weigh", `{"grams":1}`, v1, v2)
	assert.Truef(t, err == nil && p.Hook, "got %+v, %v, want the hook of the newest version", p, err)
	p, err = prepare("weigh", `{"kilos":1,"scale":"A"}`, v2)
	assert.Truef(t, err == nil && !p.Hook, "got %+v, %v, want no hook", p, err)
}

func TestCreation_ExistingOfOtherVersion(t *testing.T) {
	t.Parallel()
	v1, _, v3 := parcels(t)
	p, err := Prepare(transitions.Command{Workflow: "parcel", Transition: "accept", Key: "k", Payload: []byte(`{"number":"P-1","total":1}`)},
		v3, fixedID, v1)
	require.NoError(t, err)
	d := Decide(p, v1, &transitions.Instance{Workflow: "parcel", BusinessKey: "P-1", Definition: 1, State: "here", Version: 1}, noon)
	wantCode(t, d.Err, workflow.AlreadyExists)
}

// reasonsText is the document that the caller gets.
func reasonsText(err error) string { return string(transitions.ProblemOf(err).JSON()) }
