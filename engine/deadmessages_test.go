package engine_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inbox"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func wantRetried(t testing.TB, e *engine.Engine, f inspect.MessageStatus, want string) {
	t.Helper()
	assert.Equal(t, want, dead(t, e, inspect.DeadMessageFilter{Status: f}), f)
}

// The refusal of a message is final for its sender, and not for an operator who has
// mended what was wrong.
func TestAPersonRetriesAMessageThatWasRefused(t *testing.T) {
	t.Parallel()
	pool, e := started(t, withBank)
	consumed(t, e, fromBank("m-0", "applied", `{"loan":"l-1","amount":5}`))
	m := fromBank("m-1", "paid", `{"loan":"l-1","amount":9}`).WithDefaults()
	r, err := e.Consume(t.Context(), m)
	require.Truef(t, err == nil && r.Status == 409, "got %+v, %v", r, err)
	r, err = e.Admin().RetryMessage(t.Context(), m.Ref(), "ann", "again")
	assert.Truef(t, err == nil && r.Status == 409 && !r.Replayed, "got %+v, %v", r, err)
	wantDead(t, e, "m-1 waiting guard_refused 2")
	exec(t, pool, `UPDATE pawl.instance SET data = '{"customer":"","owed":10}'`) // whatever an operator can do about it
	for i := range 2 {
		r, err := e.Admin().RetryMessage(t.Context(), m.Ref(), "ann", "more is owed")
		require.Truef(t, err == nil && r.Status == 200 && r.Version == 2 && r.Replayed == (i > 0), "got %+v, %v", r, err)
	}
	r = consumed(t, e, m)
	assert.Truef(t, r.Replayed && r.Version == 2, "got %+v", r)
	wantDead(t, e)
	wantRetried(t, e, inspect.MessageRetried, "m-1 retried guard_refused 2")
	d, err := e.Admin().DeadMessage(t.Context(), m.Ref())
	assert.Truef(t, err == nil && d.ChangedBy == "ann" && d.Reason == "more is owed", "got %+v, %v", d, err)
}

// A discarded message is answered as one that was refused, and may be taken back.
func TestDiscardedMessage_Redelivered(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t), withBank)
	m := fromBank("m-1", "paid", `{"loan":"l-1","amount":2}`).WithDefaults()
	wantCode(t, errOf(e.Consume(t.Context(), m)), workflow.InstanceNotFound)
	for range 2 {
		d, err := e.Admin().DiscardMessage(t.Context(), m.Ref(), "ann", "a test of theirs")
		require.Truef(t, err == nil && d.Status == inspect.MessageDiscarded && d.ChangedBy == "ann" && d.Reason == "a test of theirs" &&
			d.Body == nil, "got %+v, %v", d, err)
	}
	consumed(t, e, fromBank("m-0", "applied", `{"loan":"l-1","amount":5}`))
	r, err := e.Consume(t.Context(), m)
	assert.Truef(t, err == nil && r.Status == 409 && workflow.CodeOf(r.Err()) == workflow.CommandCancelled, "got %+v, %v", r, err)
	wantDead(t, e)
	wantRetried(t, e, inspect.MessageDiscarded, "m-1 discarded command_cancelled 2")
	if r, err := e.Admin().RetryMessage(t.Context(), m.Ref(), "bob", "it was none"); err != nil || r.Status != 200 {
		t.Errorf("got %+v, %v", r, err)
	}
	// What is done is not discarded any more.
	d, err := e.Admin().DiscardMessage(t.Context(), m.Ref(), "ann", "")
	assert.Truef(t, err == nil && d.Status == inspect.MessageRetried && d.ChangedBy == "bob", "got %+v, %v", d, err)
	n, err := e.Admin().ForgetMessages(t.Context(), time.Now().Add(-time.Hour), 10)
	assert.Truef(t, err == nil && n == 0, "forgot %d, %v", n, err)
	n, err = e.Admin().ForgetMessages(t.Context(), time.Now().Add(time.Hour), 10)
	assert.Truef(t, err == nil && n == 1, "forgot %d, %v", n, err)
}

// fakeSource hands over its messages, and counts what it may acknowledge.
type fakeSource struct {
	messages []transitions.Message
	runs     atomic.Int32
	answers  chan error
}

func (s *fakeSource) Run(ctx context.Context, consume func(context.Context, transitions.Message) error) error {
	if s.runs.Add(1) == 1 {
		panic("the broker is not there")
	}
	for _, m := range s.messages {
		s.answers <- consume(ctx, m)
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestAnEngineConsumesWhatItsSourcesReceive(t *testing.T) {
	t.Parallel()
	wrong := fromBank("dead", "wrong", `{"loan":"l-1"}`)
	early := fromBank("early", "paid", `{"loan":"l-1","amount":1}`)
	early.Delivery = 1
	s := &fakeSource{answers: make(chan error, 10), messages: []transitions.Message{
		early, wrong, fromBank("", "applied", `{}`), fromBank("m-1", "applied", `{"loan":"l-1","amount":5}`)}}
	e := newEngine(t, database(t), withBank, func(c *engine.Config) { c.Sources = []inbox.Source{s} })
	for i, want := range []workflow.Code{workflow.InstanceNotFound, "", "", ""} {
		err := <-s.answers
		assert.Equalf(t, want, workflow.CodeOf(err), "message %d: %v", i, err)
	}
	wantDead(t, e, "dead waiting invalid_payload 1")
	for range 2 {
		e.Stop(t.Context())
	}
	assert.Equal(t, int32(2), s.runs.Load(), "it ran times")
}

// Operators search by the business key in the message, even if that instance does not exist or the message creates it.
func TestDeadMessages_ByBusinessKey(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t), withBank)
	for id, m := range map[string][2]string{
		"refused": {"paid", `{"loan":"l-1","amount":9}`}, "early": {"paid", `{"loan":"l-2","amount":9}`}, "nobody's": {"unheard of", `{}`}} {
		_, _ = e.Consume(t.Context(), fromBank(id, m[0], m[1]))
	}
	found := func(f inspect.DeadMessageFilter) (ids []string) {
		t.Helper()
		list, _, err := e.Admin().DeadMessages(t.Context(), f)
		require.NoError(t, err)
		for _, d := range list {
			assert.Truef(t, (d.BusinessKey == "" || d.Instance == loanID(d.BusinessKey)) && (d.Workflow == "") == (d.ID == "nobody's"), "%+v", d)
			ids = append(ids, d.ID+" "+d.BusinessKey)
		}
		slices.Sort(ids)
		return ids
	}
	for _, tt := range []struct {
		f    inspect.DeadMessageFilter
		want []string
	}{
		{inspect.DeadMessageFilter{}, []string{"early l-2", "nobody's ", "refused l-1"}},
		{inspect.DeadMessageFilter{Workflow: "loan"}, []string{"early l-2", "refused l-1"}},
		{inspect.DeadMessageFilter{Workflow: "loan", BusinessKey: "l-2"}, []string{"early l-2"}},
		{inspect.DeadMessageFilter{Workflow: "loan", BusinessKey: "l-1", Consumer: "bank"}, []string{"refused l-1"}},
		{inspect.DeadMessageFilter{Workflow: "loan", BusinessKey: "l-3"}, nil},
	} {
		got := found(tt.f)
		assert.Truef(t, slices.Equal(got, tt.want), "%+v: %q", tt.f, got)
	}
	_, _, err := e.Admin().DeadMessages(t.Context(), inspect.DeadMessageFilter{BusinessKey: "l-1"})
	wantCode(t, err, workflow.InvalidRequest)
}
