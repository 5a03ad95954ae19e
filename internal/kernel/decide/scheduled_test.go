package decide

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func (l *life) later(c transitions.Command) transitions.Command {
	c.NotBefore = noon.Add(time.Hour)
	return c
}

// scheduled has a command scheduled, and returns it as it is when it is due.
func (l *life) scheduled(c transitions.Command) *InFlight {
	l.t.Helper()
	p, d := l.decide(l.later(c))
	require.Truef(l.t, d.Flight != nil, "not scheduled: %+v", d)
	f := FlightOf(p.Begun(&d, l.now), "default")
	f.Attempt = 1
	return f
}

func (l *life) due(f *InFlight) Decision {
	l.t.Helper()
	p, err := f.Due(l.w)
	require.NoError(l.t, err)
	return Decide(p, l.w, l.inst, noon.Add(time.Hour))
}

func TestACommandForLaterWaitsAndChangesNothing(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	p, d := l.decide(l.later(l.command("edit", `{"text":"later"}`)))
	want := Decision{Stored: true, Status: transitions.Pending, Code: 202,
		Flight: &Flight{Phase: transitions.Scheduled, RunAt: noon.Add(time.Hour), Definition: l.inst.Definition,
			Request: []byte(`{"payload":{"text":"later"},"roles":["traveller"]}`)}}
	assert.Equal(t, want, d, d.Flight.Request)
	r := p.Begun(&d, noon)
	assert.Truef(t, r.Version == 0 && r.RunAt.Equal(noon.Add(time.Hour)) && r.Phase == transitions.Scheduled, "its record is %+v", r)
	// It is not looked at before its time: it may be possible then.
	if _, d := l.decide(l.later(l.command("pay", `{}`))); d.Flight == nil {
		t.Errorf("got %+v", d)
	}
	l.inst = nil
	_, d = l.decide(l.later(transitions.Command{Workflow: "trip", Transition: "edit", Key: "k", Instance: madeUp}))
	wantCode(t, d.Err, workflow.InstanceNotFound)
	checkRefusal(t, d, nil)
}

// When it is due it is the command that was asked for: the same fingerprint, so
// that a retry of the caller finds it, and the same request to the byte.
func TestScheduled_SameRequest(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	for _, payload := range []string{``, `{}`, `{"text":"Rome"}`, `{"n":1e3}`, `{"text":"<é\u2028\u0007\"\\/>"}`,
		`{"leaves":"2026-03-02T00:00:00Z","do":"emit"}`} {
		for _, tenant := range []string{"", "acme"} {
			c := l.command("edit", payload)
			c.Tenant, c.IfVersion, c.Scope, c.Reason = tenant, 7, "mine", "said "+payload
			c = l.later(c)
			p := l.prepare(c)
			d := Decide(p, l.w, anyTrip(planned, `{}`), noon)
			f := FlightOf(p.Begun(&d, noon), p.Tenant)
			f.Attempt = 4
			due, err := f.Due(l.w)
			require.NoError(t, err)
			assert.Truef(t, due.Fingerprint == p.Fingerprint && bytes.Equal(due.Canonical, p.Canonical) && due.Definition == p.Definition,
				"%s: due as %x %s, want %x %s", payload, due.Fingerprint, due.Canonical, p.Fingerprint, p.Canonical)
			want := p.Command
			want.NotBefore, want.Payload = time.Time{}, nil
			assert.Truef(t, reflect.DeepEqual(due.Command, want) && *due.Resumed == (Resumed{Attempt: 4, Phase: transitions.Scheduled}),
				"%s: due as %+v, want %+v", payload, due.Command, want)
		}
	}
}

func TestScheduled_CreationID(t *testing.T) {
	t.Parallel()
	l := &life{t: t, w: built(t, tripDefinition()), now: noon}
	f := l.scheduled(l.command("plan", `{}`))
	f.Instance = uuid.MustParse("01936b0e-0000-7000-8000-00000000000b")
	d := l.due(f)
	assert.Truef(t, d.After != nil && d.After.ID == f.Instance && d.Code == 201 && d.After.CreatedAt.Equal(noon.Add(time.Hour)), "got %+v", d)
	f = l.scheduled(l.command("invite", `{"text":"bob"}`))
	d = l.due(f)
	assert.Truef(t, d.After != nil && d.After.ID == transitions.InstanceID("default", "trip", "bob") && d.After.BusinessKey == "bob",
		"by business key: got %+v", d)
	l.inst = d.After
	d = l.due(f)
	assert.Truef(t, d.Status == transitions.Succeeded && d.After == nil && d.Code == 200, "of what is there already: got %+v", d)
}

// A caller can correct a direct request; the refusal of a due command is final.
func TestScheduled_PermanentRefusal(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	withoutRole := l.command("book", `{}`)
	withoutRole.Roles = nil
	past := l.command("edit", `{}`)
	past.IfVersion = 9
	for name, tt := range map[string]struct {
		command transitions.Command
		inst    *transitions.Instance
		want    workflow.Code
		final   bool
	}{
		"without the role":      {withoutRole, l.inst, workflow.RoleRequired, true},
		"not possible any more": {l.command("edit", `{}`), anyTrip(over, `{}`), workflow.IllegalTransition, true},
		"refused":               {l.command("edit", `{"do":"refuse"}`), l.inst, workflow.GuardRefused, true},
		"of another version":    {past, l.inst, workflow.VersionConflict, true},
		"of what is not there":  {l.command("edit", `{}`), nil, workflow.InstanceNotFound, true},
		"while the case is paused": {l.command("edit", `{}`), func() *transitions.Instance { i := clone(l.inst); i.Paused = true; return i }(),
			workflow.Paused, false},
		"with a defect": {l.command("edit", `{"do":"panic"}`), l.inst, workflow.Internal, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			f := l.scheduled(tt.command)
			l.inst = tt.inst
			d := l.due(f)
			wantCode(t, d.Err, tt.want)
			require.Equal(t, tt.final, d.Stored, "stored")
			if tt.final {
				body := decoded[transitions.Problem](t, d.Body)
				assert.Truef(t, d.Status == transitions.FailedFinal && d.Code == tt.want.Info().Status && body.Code == tt.want && body.Final,
					"got %+v, %s", d, d.Body)
			}
		})
	}
	l = newLife(t)
	f := l.scheduled(l.command("edit", `{}`))
	f.Transition = "gone" // from the newest version
	_, err := f.Due(l.w)
	wantCode(t, err, workflow.TransitionNotFound)
}

func TestScheduledCommandKeepsItsCredential(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	c := l.command("edit", `{"text":"later"}`)
	c.Credential = transitions.Credential{Key: "4fKq0ZbT9xWc", Ticket: "t", Until: noon.Add(2 * time.Hour)}
	due, err := l.scheduled(c).Due(l.w)
	assert.Truef(t, err == nil && due.Credential == c.Credential, "%+v, %v", due.Credential, err)
	c.Credential.Key = "\xff"
	_, err = Accept(c)
	assert.Equal(t, workflow.InvalidRequest, workflow.CodeOf(err), err)
}

// inHours is a wish to leave so many hours after noon.
func inHours(n int) string {
	return fmt.Sprintf(`{"leaves":%q}`, noon.Add(time.Duration(n)*time.Hour).Format(time.RFC3339Nano))
}

// wantTimers holds what a decision arms and disarms against what it should.
func wantTimers(t *testing.T, l *life, d Decision, armed, disarmed []string) {
	t.Helper()
	for i, name := range disarmed {
		disarmed[i] = timerOf(l, name)
	}
	got := plans(d)
	assert.Truef(t, slices.Equal(got, armed), "armed %q, want %q", got, armed)
	assert.Truef(t, slices.Equal(d.Disarmed, disarmed), "disarmed %q, want %q", d.Disarmed, disarmed)
}

func TestTimer_ArmAndDisarm(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.accept("book", `{}`)
	l.now = noon.Add(30 * time.Minute)
	d := l.must(nil, l.end(f, failure(workflow.FailureError, "no seats", false)))
	wantTimers(t, l, d, []string{"scheduled nag at 01 13:30"}, nil)
	assert.Equal(t, "3", d.Commands[0].Key, "its key, which it may have had before")
	f = l.accept("book", `{}`)
	wantTimers(t, l, l.must(nil, l.end(f, Outcome{Result: []byte(`{}`)})), nil, []string{"expiry"})
}

func TestATimerWhoseTimeIsInTheDataFollowsIt(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.do("edit", inHours(50)) // before it runs
	f := l.accept("book", `{}`)
	wantTimers(t, l, l.must(nil, l.end(f, Outcome{Result: []byte(`{}`)})), []string{"scheduled leave at 03 14:00"}, []string{"expiry"})
	for _, step := range []struct {
		name, wish      string
		armed, disarmed []string
	}{
		{"unchanged", `{}`, nil, nil},
		{"later", inHours(60), []string{"scheduled leave at 04 00:00"}, []string{"departure"}},
		{"in the past", inHours(-3), []string{"scheduled leave at 01 12:00"}, []string{"departure"}}, // now
		{"still in the past", `{}`, nil, nil},
		{"on another day in the past", inHours(-99), []string{"scheduled leave at 01 12:00"}, []string{"departure"}},
	} {
		_, d := l.decide(l.command("edit", step.wish))
		t.Run(step.name, func(t *testing.T) { wantTimers(t, l, l.must(nil, d), step.armed, step.disarmed) })
	}
}

// A timer that leaves the states lists itself among the void timers; its own command is locked by the deciding node and excluded by its
// key.
func TestATimerThatFiresAndLeavesEndsTheOthers(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	_, armed := (&life{t: t, w: l.w, now: noon}).decide(transitions.Command{Workflow: "trip", Transition: "plan", Key: "k",
		Payload: []byte(`{}`)})
	expiry := armed.Commands[1].flight()
	l.now = noon.Add(24 * time.Hour)
	p, err := expiry.Due(l.w)
	require.NoError(t, err)
	d := Decide(p, l.w, l.inst, l.now)
	wantTimers(t, l, d, nil, []string{"nagging", "expiry"})
	assert.Truef(t, d.After.State == over && p.Scope == timerOf(l, "expiry") && p.Key == "1" && p.Resumed.Attempt == 1,
		"got %+v by %s %s", d.After, p.Scope, p.Key)
	again := Decide(p, l.w, d.After, l.now)
	assert.Truef(t, again.Err != nil && again.Err.Code == workflow.IllegalTransition, "fired twice: %+v", again)
}

func TestTimer_FailingFunction(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		data, wish string
		want       workflow.Code
	}{
		"it panics":                     {`{}`, `{"text":"panic"}`, workflow.Internal},
		"it panics on the old data":     {`{"log":["edit panic"]}`, `{}`, workflow.Internal},
		"it gives a year past all":      {`{}`, `{"leaves":"9999-12-31T23:59:59-01:00"}`, workflow.Internal},
		"the data are of another build": {`{"number":"many"}`, `{}`, workflow.NotOnThisNode},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			l.inst = anyTrip(booked, tt.data)
			_, d := l.decide(l.command("edit", tt.wish))
			wantCode(t, d.Err, tt.want)
			checkRefusal(t, d, l.inst)
		})
	}
}
