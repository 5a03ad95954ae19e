package workflow

import (
	"reflect"
	"strconv"
	"sync"
	"testing"
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
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWorkflowAnswers(t *testing.T) {
	w := fullWorkflow(t)
	if want := []State{"filed", "checked", "paid", "withdrawn"}; !reflect.DeepEqual(w.States, want) {
		t.Errorf("states %v", w.States)
	}
	if !w.IsFinal("paid") || w.IsFinal("filed") || w.IsFinal("unknown") {
		t.Error("IsFinal")
	}
	if n := len(w.Named("withdraw")); n != 2 || len(w.Named("file")) != 1 || w.Named("unknown") != nil {
		t.Errorf("Named: %d", n)
	}
	if s := w.Leaving("withdraw", "checked"); s == nil || s.Hook != "by hand" {
		t.Errorf("Leaving: %+v", s)
	}
	if w.Leaving("withdraw", "paid") != nil || w.Leaving("file", "filed") != nil || w.Leaving("unknown", "filed") != nil {
		t.Error("something leaves where nothing does")
	}
	if want := []string{"approve", "withdraw"}; !reflect.DeepEqual(w.Allowed("checked"), want) {
		t.Errorf("allowed %v", w.Allowed("checked"))
	}
	if w.Allowed("paid") != nil {
		t.Errorf("allowed at the end: %v", w.Allowed("paid"))
	}
	if !w.Watched("check") || w.Watched("approve") {
		t.Error("Watched")
	}
}

func TestAttributesOf(t *testing.T) {
	w := fullWorkflow(t)
	for data, want := range map[string]map[string]string{
		`{"total":7}`: {"total": "7"}, `{}`: {}, ``: {},
	} {
		got, err := w.AttributesOf([]byte(data))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v", data, got, err)
		}
	}
	if _, err := w.AttributesOf([]byte(`{"total":"x"}`)); CodeOf(err) != NotOnThisNode {
		t.Errorf("got %v", err)
	}
	none, err := Define("w", 1, Start("go", "end", func(*Call, *struct{}, None) error { return nil })).Final("end").Build()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := none.AttributesOf([]byte(`no JSON`)); got != nil || err != nil {
		t.Errorf("without attributes: %v, %v", got, err)
	}
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
		States: []StateDescription{{"filed", false}, {"checked", false}, {"paid", true}, {"withdrawn", true}},
		Transitions: []TransitionDescription{
			{Name: "file", Doc: "A claim comes in.", Start: true, To: []State{"filed"}, BusinessKey: true, RefuseExisting: true},
			{Name: "check", From: []State{"filed"}, To: []State{"checked"}, Roles: []string{"clerk"}, Guards: []string{"complete"}},
			{Name: "approve", From: []State{"checked"}, To: []State{"paid", "filed", Stay}, Roles: []string{"boss", "clerk"},
				NotBy: []string{"check"}},
			{Name: "withdraw", From: []State{"filed"}, To: []State{"withdrawn"}},
			{Name: "withdraw", From: []State{"checked"}, To: []State{"withdrawn"}},
		},
	}
	if !reflect.DeepEqual(d, want) {
		t.Errorf("got %+v", d)
	}
	if schemas["check"] != `{"type":"object","properties":{},"$schema":"https://json-schema.org/draft/2020-12/schema",`+
		`"additionalProperties":false}` {
		t.Errorf("the schema of None is %s", schemas["check"])
	}
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
			if err != nil || out.To != "filed" {
				t.Errorf("%+v, %v", out, err)
			}
			if _, err := w.AttributesOf(out.Data); err != nil {
				t.Error(err)
			}
			if len(w.Describe().Transitions) != 5 {
				t.Error("Describe")
			}
		})
	}
	wg.Wait()
}
