package decide

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// recordOf is a command in flight as the store has it.
func recordOf(f *InFlight, s transitions.Status, stuck string) *transitions.Record {
	return &transitions.Record{Scope: f.Scope, Key: f.Key, Fingerprint: f.Fingerprint, Status: s, Workflow: f.Workflow,
		Transition: f.Transition,
		Instance:   f.Instance, Version: 2, Actor: f.Actor, Phase: f.Phase, Attempt: f.Attempt, Request: f.Request, Stuck: stuck}
}

// operation makes an operator's command ready.
func (l *life) operation(o transitions.Operation) *Prepared {
	l.t.Helper()
	c := transitions.Command{Key: "op", Workflow: "trip", Actor: "eve", Instance: madeUp}
	if l.inst != nil {
		c.Instance = l.inst.ID
	}
	p, err := Operate(c, o)
	require.NoError(l.t, err)
	return p
}

// operate decides an operation on a command.
func (l *life) operate(a transitions.Action, r *transitions.Record) Decision {
	l.t.Helper()
	o := transitions.Operation{Action: a, Reason: "I looked", Target: transitions.CommandRef{Scope: r.Scope, Key: r.Key}}
	if a == transitions.Resolve && r.Phase == transitions.Working {
		o.Result = []byte(`{"text":"by hand"}`)
	}
	p := l.operation(o)
	p.Stuck = r
	return Decide(p, l.w, l.inst, l.now)
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	before := clone(l.inst)
	for i, step := range []struct {
		action transitions.Action
		entry  string
		paused bool
	}{{transitions.Pause, "pawl.paused", true}, {transitions.Pause, "pawl.paused", true}, {transitions.Resume, "pawl.resumed", false},
		{transitions.Resume, "pawl.resumed", false}} {
		d := l.must(nil, Decide(l.operation(transitions.Operation{Action: step.action, Reason: "the strike"}), l.w, l.inst, noon))
		want := clone(before)
		want.Version, want.Paused = int64(i+2), step.paused
		assert.Truef(t, reflect.DeepEqual(d.After, want) && d.Status == transitions.Succeeded && d.Code == 200 && d.Err == nil,
			"%s: the instance became %+v", step.action, d.After)
		e := d.Entry
		assert.Truef(t, e.Transition == step.entry && e.Actor == "eve" && e.Reason == "the strike" && e.From == planned && e.To == planned,
			"the entry is %+v", e)
		assert.Truef(t, len(d.Commands)+len(d.Disarmed) == 0 && d.Cancelled == nil, "other commands change: %+v", d)
		r, err := (transitions.Receipt{Status: d.Code, Body: d.Body}).Result()
		assert.Truef(t, err == nil && r.Version == want.Version && r.State == planned, "the answer is %s, %v", d.Body, err)
	}
	l.inst = nil
	d := Decide(l.operation(transitions.Operation{Action: transitions.Pause}), nil, nil, noon)
	wantCode(t, d.Err, workflow.InstanceNotFound)
	checkRefusal(t, d, nil)
}

func TestOperateRefuses(t *testing.T) {
	t.Parallel()
	target := transitions.CommandRef{Scope: "s", Key: "k"}
	for _, tt := range []struct {
		name    string
		change  func(*transitions.Command)
		o       transitions.Operation
		want    workflow.Code
		message string
	}{
		{"what does not exist", nil, transitions.Operation{Action: "burn"}, workflow.InvalidRequest, `unknown operation "burn"`},
		{"a pause of a command", nil, transitions.Operation{Action: transitions.Pause, Target: target}, workflow.InvalidRequest,
			"about an instance"},
		{"a retry of nothing", nil, transitions.Operation{Action: transitions.Retry}, workflow.InvalidRequest, "needs the scope and the key"},
		{"a retry without a key", nil, transitions.Operation{Action: transitions.Retry, Target: transitions.CommandRef{Scope: "s"}},
			workflow.InvalidRequest, "needs the scope"},
		{"an abandon with a result", nil, transitions.Operation{Action: transitions.Abandon, Target: target, Result: []byte(`1`)},
			workflow.InvalidRequest, "takes a result"},
		{"a result that is no JSON", nil, transitions.Operation{Action: transitions.Resolve, Target: target, Result: []byte(`{`)},
			workflow.InvalidPayload, ""},
		{"a result that says more", nil, transitions.Operation{Action: transitions.Resolve, Target: target, Result: []byte(`1,"w":2`)},
			workflow.InvalidPayload, ""},
		{"a result that is two", nil, transitions.Operation{Action: transitions.Resolve, Target: target, Result: []byte(`{}} {"v":{}`)},
			workflow.InvalidPayload, ""},
		{"a reason too long", nil, transitions.Operation{Action: transitions.Pause, Reason: strings.Repeat("x", transitions.MaxReason+1)},
			workflow.InvalidRequest, "the reason is longer"},
		{"a reason with a NUL", nil, transitions.Operation{Action: transitions.Pause, Reason: "\x00"}, workflow.InvalidRequest,
			"the reason contains"},
		{"no key", func(c *transitions.Command) { c.Key = "" }, transitions.Operation{Action: transitions.Pause}, workflow.KeyMissing, ""},
		{"a scope of Pawl's", func(c *transitions.Command) { c.Scope = "pawl:x" }, transitions.Operation{Action: transitions.Pause},
			workflow.ScopeInvalid, "Pawl's own"},
		{"an actor of Pawl's", func(c *transitions.Command) { c.Actor = "pawl:undo" }, transitions.Operation{Action: transitions.Pause},
			workflow.InvalidRequest, "Pawl's own"},
		{"a target that is not text", nil, transitions.Operation{Action: transitions.Retry,
			Target: transitions.CommandRef{Scope: "\xff", Key: "k"}}, workflow.InvalidRequest, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := transitions.Command{Key: "op", Instance: madeUp}
			if tt.change != nil {
				tt.change(&c)
			}
			p, err := Operate(c, tt.o)
			wantCode(t, err, tt.want)
			assert.Truef(t, p == nil && (err == nil || strings.Contains(err.Error(), tt.message)),
				"got %+v, %v, want a message with %q", p, err, tt.message)
		})
	}
}

func TestAnOperationIsACommandOfItsOwn(t *testing.T) {
	t.Parallel()
	base := func() (transitions.Command, transitions.Operation) {
		return transitions.Command{Key: "op", Instance: madeUp}, transitions.Operation{Action: transitions.Resolve,
			Target: transitions.CommandRef{Scope: "s", Key: "k"}, Result: []byte(`{"b":1,"a":[2]}`)}
	}
	c, o := base()
	p, err := Operate(c, o)
	require.Truef(t, err == nil && p.Scope == "ops:"+madeUp.String() && p.Actor == "local" &&
		string(p.Operation.Result) == `{"a":[2],"b":1}` && string(p.Canonical) == `{"key":"k","result":{"a":[2],"b":1},"scope":"s"}`,
		"got %+v, %v", p, err)
	same, _ := base()
	again, err := Operate(same, transitions.Operation{Action: transitions.Resolve, Target: o.Target, Result: []byte(` {"a" :[2.0],"b":1}`)})
	assert.Truef(t, err == nil && again.Fingerprint == p.Fingerprint, "the same result has another fingerprint, %v", err)
	for name, change := range map[string]func(*transitions.Command, *transitions.Operation){
		"another result":  func(_ *transitions.Command, o *transitions.Operation) { o.Result = []byte(`null`) },
		"another target":  func(_ *transitions.Command, o *transitions.Operation) { o.Target.Key = "other" },
		"another action":  func(_ *transitions.Command, o *transitions.Operation) { o.Action, o.Result = transitions.Abandon, nil },
		"another reason":  func(_ *transitions.Command, o *transitions.Operation) { o.Reason = "why" },
		"another actor":   func(c *transitions.Command, _ *transitions.Operation) { c.Actor = "eve" },
		"on another case": func(c *transitions.Command, _ *transitions.Operation) { c.Instance = uuid.Nil },
	} {
		c, o := base()
		change(&c, &o)
		other, err := Operate(c, o)
		assert.Truef(t, err == nil && other.Fingerprint != p.Fingerprint, "%s has the same fingerprint, %v", name, err)
	}
}

// Every action on a stuck command of every phase: what becomes of the instance, of the command, and of the operation itself.
func TestOperationsOnAStuckCommand(t *testing.T) {
	t.Parallel()
	working := func(l *life) *InFlight { return l.accept("book", `{}`) }
	left := func(l *life) *InFlight {
		f := l.accept("book", `{}`)
		l.do("end", `{}`)
		return f
	}
	undoing := func(l *life) *InFlight {
		f := left(l)
		d := l.end(f, failure(workflow.FailureCancelled, "", true))
		return d.Commands[0].flight()
	}
	scheduled := func(l *life) *InFlight { return l.scheduled(l.command("edit", `{}`)) }
	creating := func(l *life) *InFlight {
		l.inst = nil
		return l.scheduled(l.command("plan", `{}`))
	}
	for _, tt := range []struct {
		action transitions.Action
		phase  string
		stick  func(*life) *InFlight
		entry  string // "": the instance does not change
		status transitions.Status
		code   int
	}{
		{transitions.Retry, "working", working, "book.retried planned", transitions.Pending, 0},
		{transitions.Retry, "undoing", undoing, "book.retried over", transitions.Pending, 0},
		{transitions.Retry, "scheduled", scheduled, "edit.retried planned", transitions.Pending, 0},
		{transitions.Retry, "creating", creating, "", transitions.Pending, 0},
		{transitions.Resolve, "working", working, "book booked", transitions.Succeeded, 200},
		{transitions.Resolve, "left behind", left, "", transitions.FailedFinal, 409},
		{transitions.Resolve, "undoing", undoing, "book.undone over", transitions.Succeeded, 200},
		{transitions.Abandon, "working", working, "book.failed unbooked", transitions.FailedFinal, 409},
		{transitions.Abandon, "left behind", left, "", transitions.FailedFinal, 409},
		{transitions.Abandon, "undoing", undoing, "book.not_undone over", transitions.FailedFinal, 409},
		{transitions.Abandon, "scheduled", scheduled, "edit.abandoned planned", transitions.FailedFinal, 409},
		{transitions.Abandon, "creating", creating, "", transitions.FailedFinal, 409},
	} {
		t.Run(fmt.Sprint(tt.action, " ", tt.phase), func(t *testing.T) {
			l := newLife(t)
			f := tt.stick(l)
			f.Attempt = 3
			stuck := recordOf(f, transitions.FailedRetryable, "unknown_outcome")
			d := l.operate(tt.action, stuck)
			require.Truef(t, d.Stored && d.Err == nil && d.Status == transitions.Succeeded && d.Code == 200 && d.Flight == nil,
				"the operation itself: %+v", d)
			answer := fmt.Sprintf(`{"operation":%q,"scope":%q,"key":%q,"at":"2026-03-01T12:00:00.123456Z"}`, tt.action, f.Scope, f.Key)
			assert.Equalf(t, answer, string(d.Body), "it answers %s", d.Body)
			checkTarget(t, d, stuck, tt.status, tt.code)
			if tt.entry == "" {
				assert.Nil(t, d.After, "the instance became")
				return
			}
			e := d.Entry
			if state := strings.Fields(tt.entry)[1]; tt.phase == "working" && tt.action == transitions.Retry {
				tt.entry = "book.retried booking"
			} else if string(d.After.State) != state {
				t.Errorf("it is in %s, want %s", d.After.State, state)
			}
			if got := fmt.Sprint(e.Transition, " ", e.To); got != tt.entry || e.Actor != "eve" || !strings.Contains(e.Reason, "I looked") {
				t.Errorf("the entry is %s by %s because %q, want %s", got, e.Actor, e.Reason, tt.entry)
			}
		})
	}
}

func TestRetry_AfterHandover(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.accept("book", `{}`)
	back := f.HandOver(Outcome{Result: []byte(`{"ticket":"T-1"}`)}, workflow.Errorf(workflow.NotOnThisNode, "not here")).Back
	f.Request, f.Attempt = back.Request, 3
	assert.Truef(t, back.Failure == "not_on_this_node: not here" && !back.Failed && !back.Unsure, "it is given back as %+v", back)
	d := l.operate(transitions.Retry, recordOf(f, transitions.FailedRetryable, "undecidable"))
	assert.Truef(t, d.Target != nil && string(d.Target.Flight.Request) == `{"payload":{},"tried":true}`, "it goes on as %+v", d.Target)
}

// checkTarget holds what becomes of the stuck command against what should.
func checkTarget(t *testing.T, d Decision, stuck *transitions.Record, status transitions.Status, code int) {
	t.Helper()
	x := d.Target
	require.Falsef(t, x == nil || x.CommandRef != (transitions.CommandRef{Transition: stuck.Transition, Scope: stuck.Scope, Key: stuck.Key}) ||
		x.Attempt != 3 || x.Was != transitions.FailedRetryable ||
		x.Status != status || x.Code != code || status != transitions.Pending && stuck.Phase != transitions.Scheduled &&
		x.Version != d.Entry.Version, "the command becomes %+v", x)
	if status != transitions.Pending {
		err := transitions.Receipt{Status: x.Code, Body: x.Body}.Err()
		assert.Truef(t, x.Flight == nil && len(x.Body) != 0 && (err == nil) == (status == transitions.Succeeded),
			"it is answered %d %s", x.Code, x.Body)
		return
	}
	request := stuck.Request
	if stuck.Phase == transitions.Working {
		request = []byte(`{"payload":{},"tried":true}`)
	}
	assert.Truef(t, x.Body == nil && reflect.DeepEqual(*x.Flight, Flight{Phase: stuck.Phase, RunAt: noon, Request: request}),
		"it goes on as %+v", x.Flight)
}

func TestAPersonsResultMustFit(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]workflow.Code{
		`{"unknown":1}`: workflow.InvalidPayload, `{"n":"many"}`: workflow.InvalidPayload, `[]`: workflow.InvalidPayload,
		"": workflow.InvalidPayload, `{"do":"panic"}`: workflow.Internal} {
		l := newLife(t)
		stuck := recordOf(l.accept("book", `{}`), transitions.FailedRetryable, "unknown_outcome")
		o := transitions.Operation{Action: transitions.Resolve, Target: transitions.CommandRef{Scope: stuck.Scope, Key: stuck.Key}}
		if result != "" {
			o.Result = []byte(result)
		}
		p := l.operation(o)
		p.Stuck = stuck
		d := Decide(p, l.w, l.inst, noon)
		wantCode(t, d.Err, want)
		checkRefusal(t, d, nil)
		assert.Nilf(t, d.Target, "%s: the command changes all the same", result)
	}
	l := newLife(t)
	stuck := recordOf(l.scheduled(l.command("edit", `{}`)), transitions.FailedRetryable, "undecidable")
	wantCode(t, l.operate(transitions.Resolve, stuck).Err, workflow.InvalidRequest)
}
