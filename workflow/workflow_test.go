package workflow

import (
	"reflect"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func fullWorkflow(t testing.TB) *Workflow {
	t.Helper()
	act := func(*Call, *ledger, namedPayload) error { return nil }
	none := func(*Call, *ledger, None) error { return nil }
	w, err := Define("claim", 2,
		Start("file", "filed", act).BusinessKey(func(p namedPayload) string { return p.Name }).RefuseExisting().Doc("A claim comes in."),
		On("check", From("filed"), "checked", none).Role("clerk").Guard("complete", func(*Call, ledger) error { return nil }),
		On("approve", From("checked"), "paid", none).Role("boss", "clerk").NotBy("check").Or("filed", Stay),
		On("withdraw", From("filed"), "withdrawn", none),
		On("withdraw", From("checked"), "withdrawn", none).Hook("by hand"),
	).Final("paid", "withdrawn").Roles("clerk", "boss").
		Attr("total", func(l ledger) string {
			if l.Total == 0 {
				return ""
			}
			return strconv.Itoa(l.Total)
		}).Build()
	require.NoError(t, err)
	return w
}

func TestWorkflowAnswers(t *testing.T) {
	w := fullWorkflow(t)
	assert.Equal(t, []State{"filed", "checked", "paid", "withdrawn"}, w.States, "states")
	assert.True(t, w.IsFinal("paid") && !w.IsFinal("filed") && !w.IsFinal("unknown"), "IsFinal")
	n := len(w.Named("withdraw"))
	assert.Truef(t, n == 2 && len(w.Named("file")) == 1 && w.Named("unknown") == nil, "Named: %d", n)
	s := w.Leaving("withdraw", "checked")
	assert.Truef(t, s != nil && s.Hook == "by hand", "Leaving: %+v", s)
	assert.True(t, w.Leaving("withdraw", "paid") == nil && w.Leaving("file", "filed") == nil && w.Leaving("unknown", "filed") == nil,
		"something leaves where nothing does")
	assert.Equal(t, []string{"approve", "withdraw"}, w.Allowed("checked"), "allowed")
	assert.Nil(t, w.Allowed("paid"), "allowed at the end")
	assert.True(t, w.Watched("check") && !w.Watched("approve"), "Watched")
}

func TestAttributesOf(t *testing.T) {
	w := fullWorkflow(t)
	for data, want := range map[string]map[string]string{
		`{"total":7}`: {"total": "7"}, `{}`: {}, ``: {},
	} {
		got, err := w.AttributesOf([]byte(data))
		assert.Truef(t, err == nil && reflect.DeepEqual(got, want), "%s: %v, %v", data, got, err)
	}
	if _, err := w.AttributesOf([]byte(`{"total":"x"}`)); CodeOf(err) != NotOnThisNode {
		t.Errorf("got %v", err)
	}
	none, err := Define("w", 1, Start("go", "end", func(*Call, *struct{}, None) error { return nil })).Final("end").Build()
	require.NoError(t, err)
	got, err := none.AttributesOf([]byte(`no JSON`))
	assert.Truef(t, got == nil && err == nil, "without attributes: %v, %v", got, err)
}

func TestDescribeSaysWhatIsDeclared(t *testing.T) {
	d := fullWorkflow(t).Describe()
	schemas := map[string]string{}
	for i := range d.Transitions {
		schemas[d.Transitions[i].Name] = string(d.Transitions[i].Payload)
		d.Transitions[i].Payload = nil
	}
	want := Description{
		Name: "claim", Version: 2, Roles: []string{"clerk", "boss"}, Attributes: []string{"total"},
		States: []StateDescription{{Name: "filed"}, {Name: "checked"}, {Name: "paid", Final: true}, {Name: "withdrawn", Final: true}},
		Transitions: []TransitionDescription{
			{Name: "file", Doc: "A claim comes in.", Start: true, To: []State{"filed"}, BusinessKey: true, RefuseExisting: true},
			{Name: "check", From: []State{"filed"}, To: []State{"checked"}, Roles: []string{"clerk"}, Guards: []string{"complete"}},
			{Name: "approve", From: []State{"checked"}, To: []State{"paid", "filed", Stay}, Roles: []string{"boss", "clerk"},
				NotBy: []string{"check"}},
			{Name: "withdraw", From: []State{"filed"}, To: []State{"withdrawn"}},
			{Name: "withdraw", From: []State{"checked"}, To: []State{"withdrawn"}},
		},
	}
	assert.Equal(t, want, d)
	assert.Equal(t, `{"type":"object","properties":{},"$schema":"https://json-schema.org/draft/2020-12/schema",`+
		`"additionalProperties":false}`, schemas["check"], "the schema of None")
}

// Engines share a workflow among goroutines.
func TestWorkflowIsSafeForConcurrentUse(t *testing.T) {
	w := fullWorkflow(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			start := w.Named("file")[0]
			p, err := start.Decode([]byte(`{"name":"c-1"}`))
			if err != nil {
				t.Error(err)
				return
			}
			out, err := start.Run(someFacts, nil, p)
			assert.Truef(t, err == nil && out.To == "filed", "%+v, %v", out, err)
			_, err = w.AttributesOf(out.Data)
			assert.NoError(t, err)
			assert.Len(t, w.Describe().Transitions, 5, "Describe")
		})
	}
	wg.Wait()
}
