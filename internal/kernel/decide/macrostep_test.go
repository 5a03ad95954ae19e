package decide

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// claimData counts what has happened.
type claimData struct {
	Steps []string `json:"steps"`
	Open  int      `json:"open"`
}

type claimPayload struct {
	Refuse bool `json:"refuse"`
	Clear  bool `json:"clear"`
}

func step(name string) func(*workflow.Call, *claimData, claimPayload) error {
	return func(c *workflow.Call, d *claimData, p claimPayload) error {
		d.Steps = append(d.Steps, name)
		if p.Refuse {
			return workflow.Refuse("%s is refused", name)
		}
		if p.Clear && name == "score" {
			c.Goto("cleared")
		}
		c.Emit("claim."+name+"-done", nil)
		return nil
	}
}

func autoStep(name string) func(*workflow.Call, *claimData) error {
	return func(c *workflow.Call, d *claimData) error {
		d.Steps = append(d.Steps, name)
		c.Because("by itself: " + name)
		return nil
	}
}

// claim has two regions with a join, a chain of automatic transitions and an internal one.
func claim(more ...workflow.Part[claimData]) *workflow.Definition[claimData] {
	return workflow.Define("claim", 1, append([]workflow.Part[claimData]{
		workflow.Start("file", "checking", step("file")),
		workflow.On("documents", workflow.From("wanted"), "documents_ok", step("documents")),
		workflow.On("score", workflow.From("unscored"), "review", step("score")).Or("cleared"),
		workflow.On("clear", workflow.From("review"), "cleared", step("clear")),
		workflow.On("note", workflow.From("wanted"), workflow.Stay, step("note-documents")),
		workflow.On("note", workflow.From("unscored", "review"), workflow.Stay, step("note-fraud")),
		workflow.On("lapse", workflow.From("checking"), "closed", step("lapse")).Internal(),
		workflow.Auto("route", workflow.From("deciding"), "small", autoStep("route")).
			Guard("is small", func(_ *workflow.Call, d claimData) error {
				if len(d.Steps) > 5 {
					return workflow.Refuse("it is large")
				}
				return nil
			}),
		workflow.Auto("settle", workflow.From("small"), "closed", autoStep("settle")),
		workflow.On("close", workflow.From("deciding"), "closed", step("close")),
	}, more...)...).
		Regions("checking",
			workflow.Region("documents", "wanted", "documents_ok").Done("documents_ok"),
			workflow.Region("fraud", "unscored", "review", "cleared").Done("cleared")).
		Joined("checking", workflow.All, "deciding", autoStep("join")).
		Final("closed")
}

// submit decides a command on an instance, and returns the instance after it.
func submit(t *testing.T, w *workflow.Workflow, inst *transitions.Instance, transition, payload string) (Decision, *transitions.Instance) {
	t.Helper()
	c := transitions.Command{Workflow: w.Name, Transition: transition, Payload: []byte(payload), Roles: []string{transitions.AnyRole}}
	if inst != nil {
		c.Instance = inst.ID
	}
	d := Decide(prepared(t, w, c), w, inst, noon)
	if d.After != nil {
		return d, d.After
	}
	return d, inst
}

func TestMacrostep(t *testing.T) {
	w := built(t, claim())
	var inst *transitions.Instance
	for _, c := range []struct {
		transition, payload string
		state               workflow.State
		automatic           string
		steps               string
		err                 string
	}{
		{"file", `{}`, "checking(wanted,unscored)", "", "file", ""},
		{"route", `{}`, "checking(wanted,unscored)", "", "file", `"route" is not possible in state`},
		{"lapse", `{}`, "checking(wanted,unscored)", "", "file", `"lapse" is not possible in state`},
		{"documents", `{"refuse":true}`, "checking(wanted,unscored)", "", "file", "documents is refused"},
		{"documents", `{}`, "checking(documents_ok,unscored)", "", "file documents", ""},
		{"documents", `{}`, "checking(documents_ok,unscored)", "", "file documents", "allowed are: score, note"},
		{"score", `{"clear":true}`, "closed", "checking_joined,route,settle", "file documents score join route settle", ""},
		{"close", `{}`, "closed", "", "file documents score join route settle", "nothing can be done any more"},
	} {
		var d Decision
		d, inst = submit(t, w, inst, c.transition, c.payload)
		if c.err != "" {
			require.NotNil(t, d.Err, c.transition)
			assert.Contains(t, d.Err.Message, c.err)
		} else {
			require.Nil(t, d.Err, c.transition)
			names, _ := d.Entry.Cause.Automatic()
			assert.Equal(t, c.automatic, strings.Join(names, ","), c.transition)
			assert.Equal(t, c.state, d.Entry.To)
			assert.Equal(t, c.transition, d.Entry.Transition)
		}
		require.Equal(t, c.state, inst.State, c.transition)
		assert.JSONEq(t, `{"open":0,"steps":["`+strings.ReplaceAll(c.steps, " ", `","`)+`"]}`, string(inst.Data))
	}
	assert.False(t, inst.Open)
	assert.Equal(t, int64(3), inst.Version, "one version for each command")
}

func TestMacrostep_OneCommandInTwoRegions(t *testing.T) {
	w := built(t, claim())
	_, inst := submit(t, w, nil, "file", `{}`)
	d, inst := submit(t, w, inst, "note", `{}`)
	require.Nil(t, d.Err)
	assert.JSONEq(t, `{"open":0,"steps":["file","note-documents","note-fraud"]}`, string(inst.Data))
	assert.Equal(t, workflow.State("checking(wanted,unscored)"), inst.State)
	types := []string{}
	for _, e := range d.Events {
		types = append(types, e.Type)
	}
	assert.Equal(t, []string{"claim.note", "claim.note-documents-done", "claim.note-fraud-done"}, types)
	// A step of another region that is not for callers is left out.
	private := built(t, claim(workflow.On("note", workflow.From("cleared"), workflow.Stay, step("private")).Internal()))
	cleared := *inst
	cleared.State = "checking(wanted,cleared)"
	_, noted := submit(t, private, &cleared, "note", `{}`)
	assert.JSONEq(t, `{"open":0,"steps":["file","note-documents","note-fraud","note-documents"]}`, string(noted.Data))

	// Of a guard that refuses in one region the other does not hear.
	_, inst = submit(t, w, inst, "documents", `{}`)
	d, inst = submit(t, w, inst, "note", `{}`)
	require.Nil(t, d.Err)
	assert.JSONEq(t, `{"open":0,"steps":["file","note-documents","note-fraud","documents","note-fraud"]}`, string(inst.Data))
	// The data is large now, so nothing is automatic after the join.
	_, inst = submit(t, w, inst, "score", `{"clear":true}`)
	assert.Equal(t, workflow.State("deciding"), inst.State)
}

func TestMacrostep_Endless(t *testing.T) {
	w := built(t, claim(
		workflow.On("turn", workflow.From("deciding"), "left", step("turn")),
		workflow.Auto("to-right", workflow.From("left"), "right", autoStep("r")),
		workflow.Auto("to-left", workflow.From("right"), "left", autoStep("l")),
		workflow.On("end", workflow.From("left", "right"), "closed", step("end")),
	))
	inst := &transitions.Instance{Tenant: "acme", ID: madeUp, Workflow: "claim", Definition: 1, Version: 4, State: "deciding", Open: true,
		Data: []byte(`{"steps":["1","2","3","4","5","6"],"open":0}`)}
	d, _ := submit(t, w, inst, "turn", `{}`)
	require.NotNil(t, d.Err)
	assert.Equal(t, workflow.Internal, d.Err.Code)
	assert.ErrorContains(t, d.Err.Cause, "more than 100 automatic transitions follow claim.turn")
	assert.Nil(t, d.After)
}

func TestMacrostep_Timer(t *testing.T) {
	w := built(t, claim().After("lapse-late", workflow.From("wanted"), 1000, "lapse"))
	d, inst := submit(t, w, nil, "file", `{}`)
	require.Len(t, d.Commands, 1)
	lapse := d.Commands[0]
	p := prepared(t, w, transitions.Command{Workflow: "claim", Transition: "score", Instance: inst.ID, Payload: []byte(`{}`)})
	d = Decide(p, w, inst, noon)
	assert.Empty(t, d.Disarmed, "the other region does not stop the timer")
	d, _ = submit(t, w, inst, "documents", `{}`)
	assert.Equal(t, []string{lapse.Scope}, d.Disarmed)
	// The timer itself may do what no caller may.
	p = &Prepared{Command: transitions.Command{Tenant: inst.Tenant, Workflow: "claim", Transition: lapse.Transition, Instance: inst.ID,
		Roles: []string{transitions.AnyRole}, Options: transitions.Options{Scope: lapse.Scope}}, Canonical: []byte(`{}`), Definition: w}
	p.Payload, _ = w.Leaving("lapse", inst.State).Decode(nil)
	d = Decide(p, w, inst, noon)
	require.Nil(t, d.Err)
	assert.Equal(t, workflow.State("closed"), d.After.State)
}

func TestExplain_Regions(t *testing.T) {
	w := built(t, claim())
	_, inst := submit(t, w, nil, "file", `{}`)
	allowed := map[string]bool{}
	for _, o := range Explain(w, inst, "ann", nil, noon) {
		allowed[o.Transition] = o.Allowed
	}
	assert.Equal(t, map[string]bool{"documents": true, "score": true, "clear": false, "note": true, "close": false}, allowed)
}
