package decide

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestASuccessTakesTheInstanceOn(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.accept("book", `{"text":"Rome"}`)
	before := clone(l.inst)
	d := l.end(f, Outcome{Result: []byte(`{"text":"seat 7","do":"emit"}`)})
	require.Truef(t, d.Err == nil && d.Stored && d.Status == transitions.Succeeded && d.Code == 200 && d.Flight == nil, "got %+v", d)
	a := d.After
	assert.Truef(t, a.State == booked && a.Version == 3 && a.Links.InFlight == nil && d.Cancelled == nil,
		"the instance became %+v, cancelled %v", a, d.Cancelled)
	wantLog(t, d.After, "plan ", "book Rome", "booked seat 7")
	e := d.Entry
	assert.Truef(t, e.Transition == "book" && e.From == booking && e.To == booked && e.Actor == "ann" && e.Scope == f.Scope &&
		e.Key == f.Key && string(e.Payload) == `{"result":{"text":"seat 7","do":"emit"}}`, "the entry is %+v", e)
	assert.Truef(t, len(d.Events) == 2 && d.Events[0].Type == "trip.book" && d.Events[1].Type == "trip.news", "the events are %+v", d.Events)
	got, err := transitions.Receipt{Status: d.Code, Body: d.Body}.Result()
	want := (transitions.Result{Instance: l.inst.ID, Workflow: "trip", Transition: "book", State: booked, Version: 3, At: noon})
	assert.Truef(t, err == nil && reflect.DeepEqual(got, want), "the answer is %+v, %v", got, err)
	assert.Equal(t, before, l.inst, "the instance that was passed in became")
	if d := l.end(f, Outcome{Result: []byte(`{"do":"goto","text":"waiting"}`)}); d.After == nil || d.After.State != waiting {
		t.Errorf("done chose another target, and it went to %+v", d.After)
	}
}

func TestAFailureTakesTheInstanceToItsFailureState(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		outcome Outcome
		code    workflow.Code
		log     string
		undoes  bool
	}{
		{failure(workflow.FailureError, "no seats", false), workflow.ActivityFailed, "failed after 3: no seats", false},
		{failure(workflow.FailureError, "no answer", true), workflow.ActivityFailed, "failed after 3: no answer", true},
		{failure(workflow.FailureAbandoned, "lost", true), workflow.ActivityFailed, "abandoned after 3: lost", true},
		{failure(workflow.FailureCancelled, "by ann", true), workflow.CommandCancelled, "cancelled after 3: by ann", true},
		{failure(workflow.FailureCancelled, "by ann", false), workflow.CommandCancelled, "cancelled after 3: by ann", false},
		{Outcome{Result: []byte(`{"do":"refuse","text":"no window"}`)}, workflow.ActivityFailed, "refused after 1: refused: no window", true},
	} {
		t.Run(tt.log, func(t *testing.T) {
			l := newLife(t)
			f := l.accept("book", `{"text":"Rome"}`)
			d := l.end(f, tt.outcome)
			wantCode(t, d.Err, tt.code)
			assert.Truef(t, d.Stored && d.Status == transitions.FailedFinal && d.Code == 409 && d.Err.State == unbooked, "got %+v", d)
			assert.Equal(t, d.Err, (transitions.Receipt{Status: d.Code, Body: d.Body}).Err(), "its body says")
			a := d.After
			require.Truef(t, a.State == unbooked && a.Version == 3 && reflect.DeepEqual(a.Links, transitions.Links{}), "the instance became %+v", a)
			wantLog(t, d.After, "plan ", "book Rome", tt.log)
			_, message, _ := strings.Cut(tt.log, ": ")
			e := d.Entry
			assert.Truef(t, e.Transition == "book.failed" && e.Reason == message && d.Events[0].Type == "trip.book.failed", "the entry is %+v", e)
			got := decoded[workflow.Failure](t, d.Entry.Payload)
			assert.Equalf(t, message, got.Message, "the entry's payload is %+v", got)
			wantUndo(t, d, tt.undoes, f, tt.outcome.Result)
		})
	}
}

// wantUndo holds what a decision plans against whether the effect of f is to be undone.
func wantUndo(t *testing.T, d Decision, undoes bool, f *InFlight, result []byte) {
	t.Helper()
	var undos []Planned
	for _, c := range d.Commands {
		if c.Flight.Phase == transitions.Undoing {
			undos = append(undos, c)
		}
	}
	if !undoes {
		assert.Nil(t, undos, "it undoes")
		return
	}
	require.Len(t, undos, 1, "it plans undos")
	u := undos[0].flight()
	effect, err := u.EffectKey()
	own, _ := f.EffectKey()
	asked, _ := u.Asked()
	assert.Truef(t, err == nil && effect == own && u.Key == own && u.Scope == "pawl:undo:"+f.Instance.String() && u.Actor == "pawl:undo" &&
		u.Transition == "book" && string(asked.Payload) == `{"text":"Rome"}` && string(asked.Result) == string(result) && u.RunAt.Equal(noon),
		"the undo is %+v of %s with %+v, %v", u, effect, asked, err)
}

// Where another command took the instance on, the outcome changes nothing, but what has happened all the same is undone.
func TestAnEndingThatComesTooLateIsUndone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		outcome Outcome
		undoes  bool
	}{
		"it has happened":     {Outcome{Result: []byte(`{"text":"seat 7"}`)}, true},
		"it may have":         {failure(workflow.FailureCancelled, "cancelled", true), true},
		"it has not happened": {failure(workflow.FailureError, "no seats", false), false},
	} {
		for where, leave := range map[string]func(*life){
			"the instance has ended": func(l *life) { l.do("end", `{}`) },
			"another attempt of the business is under way": func(l *life) {
				l.inst.Links.InFlight = nil
				l.inst.State = planned
				l.accept("book", `{}`)
			},
			"there is no instance": func(l *life) { l.inst = nil },
		} {
			t.Run(name+", "+where, func(t *testing.T) {
				l := newLife(t)
				f := l.accept("book", `{"text":"Rome"}`)
				leave(l)
				d := l.end(f, tt.outcome)
				wantCode(t, d.Err, workflow.CommandCancelled)
				assert.Truef(t, d.After == nil && d.Stored && d.Status == transitions.FailedFinal && d.Code == 409 && d.Cancelled == nil &&
					d.Disarmed == nil, "got %+v", d)
				wantUndo(t, d, tt.undoes, f, tt.outcome.Result)
			})
		}
	}
}

func TestADefectInTheEndingLeavesNoTrace(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Outcome{
		"done panics":               {Result: []byte(`{"do":"panic"}`)},
		"done goes astray":          {Result: []byte(`{"do":"goto","text":"booking"}`)},
		"the result does not fit":   {Result: []byte(`{"n":"many"}`)},
		"the failure code panics":   failure(workflow.FailureError, "panic", true),
		"the failure code refuses":  failure(workflow.FailureError, "refuse", true),
		"done starts a stranger":    {Result: []byte(`{"do":"spawn what is not there"}`)},
		"a timer's function panics": {Result: []byte(`{"text":"all is well"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			if strings.Contains(name, "timer") {
				l.do("edit", `{"text":"panic"}`)
			}
			d := l.end(l.accept("book", `{}`), o)
			d.startChildren(func(string) *workflow.Workflow { return nil }, nobody, noon)
			wantCode(t, d.Err, workflow.Internal)
			checkRefusal(t, d, nil)
			assert.Truef(t, len(d.Commands) == 0 && d.Flight == nil, "something goes on: %+v", d)
			assert.NotContains(t, string(transitions.ProblemOf(d.Err).JSON()), "secret", "the caller is told")
		})
	}
}

// A failure's message may be any text of the workflow or of the world.
func TestAFailuresMessageIsMadeStorable(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"a\x00b", "a\xff\xfeb", strings.Repeat("é", transitions.MaxReason), ""} {
		l := newLife(t)
		d := l.end(l.accept("book", `{}`), failure(workflow.FailureError, message, true))
		require.NotNilf(t, d.After, "%.9q: %v", message, d.Err)
		assert.Equalf(t, "", transitions.TextProblem(d.Entry.Reason, transitions.MaxReason), "%.9q: the reason", message)
		for _, raw := range []jsontext.Value{d.Entry.Payload, d.Entry.Data, d.Body} {
			assert.Truef(t, raw.IsValid() && utf8.Valid(raw) && !strings.Contains(string(raw), `\u0000`) && len(raw) <= 2*transitions.MaxReason,
				"%.9q: got %.200s", message, raw)
		}
	}
}
