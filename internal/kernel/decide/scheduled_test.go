package decide

import (
	"bytes"
	"reflect"
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
	if d.Flight == nil {
		l.t.Fatalf("not scheduled: %+v", d)
	}
	f := FlightOf(p.Begun(&d, l.now), "default")
	f.Attempt = 1
	return f
}

func (l *life) due(f *InFlight) Decision {
	l.t.Helper()
	p, err := f.Due(l.w)
	if err != nil {
		l.t.Fatal(err)
	}
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

func TestATimeThatHasComeIsNow(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{noon, noon.Add(-time.Hour)} {
		l := newLife(t)
		c := l.command("edit", `{}`)
		c.NotBefore = at
		_, d := l.decide(c)
		assert.Truef(t, d.Flight == nil && d.Code == 200 && d.After != nil, "at %s: got %+v", at, d)
	}
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

func TestTheTimeIsPartOfTheIntent(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	c := l.command("edit", `{}`)
	now, later := l.prepare(c), l.prepare(l.later(c))
	utc := l.later(c)
	utc.NotBefore = utc.NotBefore.In(time.FixedZone("", 3600))
	other := l.later(c)
	other.NotBefore = other.NotBefore.Add(1)
	assert.True(t, now.Fingerprint != later.Fingerprint && l.prepare(other).Fingerprint != later.Fingerprint,
		"two times have one fingerprint")
	assert.Equal(t, later.Fingerprint, l.prepare(utc).Fingerprint, "one time has two fingerprints")
}

func TestScheduled_CreationID(t *testing.T) {
	t.Parallel()
	l := &life{t: t, w: built(t, tripDefinition()), now: noon}
	f := l.scheduled(l.command("plan", `{}`))
	f.Instance = uuid.MustParse("01936b0e-0000-7000-8000-00000000000b")
	d := l.due(f)
	assert.Truef(t, d.After != nil && d.After.ID == f.Instance && d.Code == 201 && d.After.CreatedAt.Equal(noon.Add(time.Hour)),
		"got %+v", d)
	f = l.scheduled(l.command("invite", `{"text":"bob"}`))
	if d = l.due(f); d.After == nil || d.After.ID != transitions.InstanceID("default", "trip", "bob") || d.After.BusinessKey != "bob" {
		t.Errorf("by business key: got %+v", d)
	}
	l.inst = d.After
	d = l.due(f)
	assert.Truef(t, d.Status == transitions.Succeeded && d.After == nil && d.Code == 200, "of what is there already: got %+v", d)
}

func TestAScheduledActivityIsAcceptedWhenItIsDue(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.scheduled(l.command("book", `{}`))
	d := l.due(f)
	if d.Flight == nil || d.Flight.Phase != transitions.Working || d.After.State != booking || d.After.Links.InFlight.Key != f.Key {
		t.Errorf("got %+v", d)
	}
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
				if d.Status != transitions.FailedFinal || d.Code != tt.want.Info().Status || body.Code != tt.want || !body.Final {
					t.Errorf("got %+v, %s", d, d.Body)
				}
			}
		})
	}
	l = newLife(t)
	f := l.scheduled(l.command("edit", `{}`))
	f.Transition = "gone" // from the newest version
	_, err := f.Due(l.w)
	wantCode(t, err, workflow.TransitionNotFound)
}

func TestScheduled_Cancelled(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	for _, c := range []transitions.Command{l.command("edit", `{}`), {Workflow: "trip", Transition: "plan", Key: "k"}} {
		d := l.end(l.scheduled(c), failure(workflow.FailureCancelled, "cancelled by ann", false))
		wantCode(t, d.Err, workflow.CommandCancelled)
		assert.Truef(t, d.Stored && d.Status == transitions.FailedFinal && d.After == nil && d.Err.Message == "cancelled by ann",
			"got %+v", d)
	}
}

func TestScheduledCommandKeepsItsCredential(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	c := l.command("edit", `{"text":"later"}`)
	c.Credential = transitions.Credential{Key: "4fKq0ZbT9xWc", Ticket: "t", Until: noon.Add(2 * time.Hour)}
	due, err := l.scheduled(c).Due(l.w)
	assert.Truef(t, err == nil && due.Credential == c.Credential, "%+v, %v", due.Credential, err)
	c.Credential.Key = "\xff"
	err = CheckCommand(c)
	assert.Equal(t, workflow.InvalidRequest, workflow.CodeOf(err), err)
}
