package transitions

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// recordOf is a command in flight as the store has it.
func recordOf(f *InFlight, s Status, stuck string) *Record {
	return &Record{Scope: f.Scope, Key: f.Key, Fingerprint: f.Fingerprint, Status: s, Workflow: f.Workflow, Transition: f.Transition,
		Instance: f.Instance, Version: 2, Actor: f.Actor, Phase: f.Phase, Attempt: f.Attempt, Request: f.Request, Stuck: stuck}
}

// operation makes an operator's command ready.
func (l *life) operation(o Operation) *Prepared {
	l.t.Helper()
	c := Command{Key: "op", Workflow: "trip", Actor: "eve", Instance: madeUp}
	if l.inst != nil {
		c.Instance = l.inst.ID
	}
	p, err := Operate(c, o)
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// operate decides an operation on a command.
func (l *life) operate(a Action, r *Record) Decision {
	l.t.Helper()
	o := Operation{Action: a, Reason: "I looked", Target: CommandRef{Scope: r.Scope, Key: r.Key}, Stuck: r}
	if a == Resolve && r.Phase == Working {
		o.Result = []byte(`{"text":"by hand"}`)
	}
	return Decide(l.operation(o), l.w, l.inst, l.now)
}

func TestPauseAndResumeAreNotedAndChangeNothingElse(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	before := l.inst.clone()
	for i, step := range []struct {
		action Action
		entry  string
		paused bool
	}{{Pause, "pawl.paused", true}, {Pause, "pawl.paused", true}, {Resume, "pawl.resumed", false}, {Resume, "pawl.resumed", false}} {
		d := l.must(nil, Decide(l.operation(Operation{Action: step.action, Reason: "the strike"}), l.w, l.inst, noon))
		want := before.clone()
		want.Version, want.Paused = int64(i+2), step.paused
		if !reflect.DeepEqual(d.After, want) || d.Status != Succeeded || d.Code != 200 || d.Err != nil {
			t.Errorf("%s: the instance became %+v", step.action, d.After)
		}
		if e := d.Entry; e.Transition != step.entry || e.Actor != "eve" || e.Reason != "the strike" || e.From != planned || e.To != planned {
			t.Errorf("the entry is %+v", e)
		}
		if len(d.Commands)+len(d.Disarmed) > 0 || d.Cancelled != nil {
			t.Errorf("other commands change: %+v", d)
		}
		if r, err := (Receipt{Status: d.Code, Body: d.Body}).Result(); err != nil || r.Version != want.Version || r.State != planned {
			t.Errorf("the answer is %s, %v", d.Body, err)
		}
	}
	l.inst = nil
	d := Decide(l.operation(Operation{Action: Pause}), nil, nil, noon)
	wantCode(t, d.Err, workflow.InstanceNotFound)
	checkRefusal(t, d, nil)
}

func TestAPausedInstanceBeginsNothingAndFinishesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.accept("book", `{}`)
	l.must(nil, Decide(l.operation(Operation{Action: Pause}), l.w, l.inst, noon))
	_, d := l.decide(l.command("edit", `{}`))
	wantCode(t, d.Err, workflow.Paused)
	checkRefusal(t, d, nil)
	for _, o := range Explain(l.w, l.inst, "ann", []string{AnyRole}, noon) {
		if o.Allowed || o.Reasons[len(o.Reasons)-1].Code != workflow.Paused {
			t.Errorf("%s is explained as %+v", o.Transition, o)
		}
	}
	if d := l.end(f, Outcome{Result: []byte(`{}`)}); d.Err != nil || d.After.State != booked || !d.After.Paused {
		t.Errorf("the ending: %+v", d)
	}
}

func TestOperateRefuses(t *testing.T) {
	t.Parallel()
	target := CommandRef{Scope: "s", Key: "k"}
	for _, tt := range []struct {
		name    string
		change  func(*Command)
		o       Operation
		want    workflow.Code
		message string
	}{
		{"what does not exist", nil, Operation{Action: "burn"}, workflow.InvalidRequest, `no operation "burn"`},
		{"a pause of a command", nil, Operation{Action: Pause, Target: target}, workflow.InvalidRequest, "about an instance"},
		{"a retry of nothing", nil, Operation{Action: Retry}, workflow.InvalidRequest, "needs the scope and the key"},
		{"a retry without a key", nil, Operation{Action: Retry, Target: CommandRef{Scope: "s"}}, workflow.InvalidRequest, "needs the scope"},
		{"an abandon with a result", nil, Operation{Action: Abandon, Target: target, Result: []byte(`1`)}, workflow.InvalidRequest, "takes a result"},
		{"a result that is no JSON", nil, Operation{Action: Resolve, Target: target, Result: []byte(`{`)}, workflow.InvalidPayload, ""},
		{"a result that says more", nil, Operation{Action: Resolve, Target: target, Result: []byte(`1,"w":2`)}, workflow.InvalidPayload, ""},
		{"a result that is two", nil, Operation{Action: Resolve, Target: target, Result: []byte(`{}} {"v":{}`)}, workflow.InvalidPayload, ""},
		{"a reason too long", nil, Operation{Action: Pause, Reason: strings.Repeat("x", MaxReason+1)}, workflow.InvalidRequest, "the reason is longer"},
		{"a reason with a NUL", nil, Operation{Action: Pause, Reason: "\x00"}, workflow.InvalidRequest, "the reason contains"},
		{"no key", func(c *Command) { c.Key = "" }, Operation{Action: Pause}, workflow.KeyMissing, ""},
		{"a scope of Pawl's", func(c *Command) { c.Scope = "pawl:x" }, Operation{Action: Pause}, workflow.ScopeInvalid, "Pawl's own"},
		{"an actor of Pawl's", func(c *Command) { c.Actor = "pawl:undo" }, Operation{Action: Pause}, workflow.InvalidRequest, "Pawl's own"},
		{"a target that is not text", nil, Operation{Action: Retry, Target: CommandRef{Scope: "\xff", Key: "k"}}, workflow.InvalidRequest, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Command{Key: "op", Instance: madeUp}
			if tt.change != nil {
				tt.change(&c)
			}
			p, err := Operate(c, tt.o)
			wantCode(t, err, tt.want)
			if p != nil || err != nil && !strings.Contains(err.Error(), tt.message) {
				t.Errorf("got %+v, %v, want a message with %q", p, err, tt.message)
			}
		})
	}
}

func TestAnOperationIsACommandOfItsOwn(t *testing.T) {
	t.Parallel()
	base := func() (Command, Operation) {
		return Command{Key: "op", Instance: madeUp}, Operation{Action: Resolve, Target: CommandRef{Scope: "s", Key: "k"}, Result: []byte(`{"b":1,"a":[2]}`)}
	}
	c, o := base()
	p, err := Operate(c, o)
	if err != nil || p.Scope != "ops:"+madeUp.String() || p.Actor != "local" || string(p.Operation.Result) != `{"a":[2],"b":1}` ||
		string(p.Canonical) != `{"key":"k","result":{"a":[2],"b":1},"scope":"s"}` {
		t.Fatalf("got %+v, %v", p, err)
	}
	same, _ := base()
	if again, err := Operate(same, Operation{Action: Resolve, Target: o.Target, Result: []byte(` {"a" :[2.0],"b":1}`)}); err != nil || again.Fingerprint != p.Fingerprint {
		t.Errorf("the same result has another fingerprint, %v", err)
	}
	for name, change := range map[string]func(*Command, *Operation){
		"another result":  func(_ *Command, o *Operation) { o.Result = []byte(`null`) },
		"another target":  func(_ *Command, o *Operation) { o.Target.Key = "other" },
		"another action":  func(_ *Command, o *Operation) { o.Action, o.Result = Abandon, nil },
		"another reason":  func(_ *Command, o *Operation) { o.Reason = "why" },
		"another actor":   func(c *Command, _ *Operation) { c.Actor = "eve" },
		"on another case": func(c *Command, _ *Operation) { c.Instance = uuid.Nil },
	} {
		c, o := base()
		change(&c, &o)
		if other, err := Operate(c, o); err != nil || other.Fingerprint == p.Fingerprint {
			t.Errorf("%s has the same fingerprint, %v", name, err)
		}
	}
}

// Every action on a stuck command of every phase: what becomes of the instance,
// of the command, and of the operation itself.
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
		action Action
		phase  string
		stick  func(*life) *InFlight
		entry  string // "": the instance does not change
		status Status
		code   int
	}{
		{Retry, "working", working, "book.retried planned", Pending, 0},
		{Retry, "undoing", undoing, "book.retried over", Pending, 0},
		{Retry, "scheduled", scheduled, "edit.retried planned", Pending, 0},
		{Retry, "creating", creating, "", Pending, 0},
		{Resolve, "working", working, "book booked", Succeeded, 200},
		{Resolve, "left behind", left, "", FailedFinal, 409},
		{Resolve, "undoing", undoing, "book.undone over", Succeeded, 200},
		{Abandon, "working", working, "book.failed unbooked", FailedFinal, 409},
		{Abandon, "left behind", left, "", FailedFinal, 409},
		{Abandon, "undoing", undoing, "book.not_undone over", FailedFinal, 409},
		{Abandon, "scheduled", scheduled, "edit.abandoned planned", FailedFinal, 409},
		{Abandon, "creating", creating, "", FailedFinal, 409},
	} {
		t.Run(fmt.Sprint(tt.action, " ", tt.phase), func(t *testing.T) {
			l := newLife(t)
			f := tt.stick(l)
			f.Attempt = 3
			stuck := recordOf(f, FailedRetryable, "unknown_outcome")
			d := l.operate(tt.action, stuck)
			if !d.Stored || d.Err != nil || d.Status != Succeeded || d.Code != 200 || d.Flight != nil {
				t.Fatalf("the operation itself: %+v", d)
			}
			answer := fmt.Sprintf(`{"operation":%q,"scope":%q,"key":%q,"at":"2026-03-01T12:00:00.123456Z"}`, tt.action, f.Scope, f.Key)
			if string(d.Body) != answer {
				t.Errorf("it answers %s, want %s", d.Body, answer)
			}
			checkTarget(t, d, stuck, tt.status, tt.code)
			if tt.entry == "" {
				if d.After != nil {
					t.Errorf("the instance became %+v", d.After)
				}
				return
			}
			e := d.Entry
			if state := strings.Fields(tt.entry)[1]; tt.phase == "working" && tt.action == Retry {
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

// checkTarget holds what becomes of the stuck command against what should.
func checkTarget(t *testing.T, d Decision, stuck *Record, status Status, code int) {
	t.Helper()
	x := d.Target
	if x == nil || x.CommandRef != (CommandRef{stuck.Transition, stuck.Scope, stuck.Key}) || x.Attempt != 3 || x.Was != FailedRetryable ||
		x.Status != status || x.Code != code || status != Pending && stuck.Phase != Scheduled && x.Version != d.Entry.Version {
		t.Fatalf("the command becomes %+v", x)
	}
	if status != Pending {
		err := Receipt{Status: x.Code, Body: x.Body}.Err()
		if x.Flight != nil || len(x.Body) == 0 || (err == nil) != (status == Succeeded) {
			t.Errorf("it is answered %d %s", x.Code, x.Body)
		}
		return
	}
	request := stuck.Request
	if stuck.Phase == Working {
		request = []byte(`{"payload":{},"tried":true}`)
	}
	if x.Body != nil || !reflect.DeepEqual(*x.Flight, Flight{Phase: stuck.Phase, RunAt: noon, Request: request}) {
		t.Errorf("it goes on as %+v", x.Flight)
	}
}

func TestAnOperationOnWhatDoesNotWaitForAPersonIsRefused(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.accept("book", `{}`)
	for _, a := range []Action{Retry, Resolve, Abandon} {
		for _, status := range []Status{Pending, Processing, FailedRetryable, Succeeded} {
			d := l.operate(a, recordOf(f, status, ""))
			wantCode(t, d.Err, workflow.NotStuck)
			if d.Target != nil || !strings.Contains(d.Err.Message, string(status)) {
				t.Errorf("%s of a %s one: %+v", a, status, d)
			}
		}
		p := l.operation(Operation{Action: a, Target: CommandRef{Scope: "s", Key: "k"}})
		d := Decide(p, l.w, l.inst, noon)
		wantCode(t, d.Err, workflow.CommandNotFound)
		checkRefusal(t, d, nil)
		stranger := recordOf(f, FailedRetryable, "test")
		stranger.Instance = uuid.Nil
		d = l.operate(a, stranger)
		wantCode(t, d.Err, workflow.CommandNotFound)
	}
}

func TestAPersonsResultMustFit(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]workflow.Code{
		`{"unknown":1}`: workflow.InvalidPayload, `{"n":"many"}`: workflow.InvalidPayload, `[]`: workflow.InvalidPayload, "": workflow.InvalidPayload,
		`{"do":"panic"}`: workflow.Internal,
	} {
		l := newLife(t)
		stuck := recordOf(l.accept("book", `{}`), FailedRetryable, "unknown_outcome")
		o := Operation{Action: Resolve, Target: CommandRef{Scope: stuck.Scope, Key: stuck.Key}, Stuck: stuck}
		if result != "" {
			o.Result = []byte(result)
		}
		d := Decide(l.operation(o), l.w, l.inst, noon)
		wantCode(t, d.Err, want)
		checkRefusal(t, d, nil)
		if d.Target != nil {
			t.Errorf("%s: the command changes all the same: %+v", result, d.Target)
		}
	}
	l := newLife(t)
	stuck := recordOf(l.scheduled(l.command("edit", `{}`)), FailedRetryable, "undecidable")
	wantCode(t, l.operate(Resolve, stuck).Err, workflow.InvalidRequest)
}
