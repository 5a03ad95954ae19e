package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inbox"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
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
	pool := database(t)
	e := newEngine(t, pool, withBank)
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

// Also when the refusal is past its horizon, and only a tombstone is left of it.
func TestDeadMessage_LateRetry(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool, withBank)
	consumed(t, e, fromBank("m-0", "applied", `{"loan":"l-1","amount":5}`))
	m := fromBank("m-1", "paid", `{"loan":"l-1","amount":9}`).WithDefaults()
	if r, err := e.Consume(t.Context(), m); err != nil || r.Status != 409 {
		t.Fatalf("got %+v, %v", r, err)
	}
	exec(t, pool, `UPDATE pawl.command SET status = 'expired', code = NULL, state = NULL, body = NULL WHERE key = 'm-1';
		UPDATE pawl.instance SET data = '{"customer":"","owed":10}'`)
	if r, err := e.Admin().RetryMessage(t.Context(), m.Ref(), "ann", ""); err != nil || r.Status != 200 {
		t.Errorf("got %+v, %v", r, err)
	}
	// A message that was consumed is never consumed again; no row says here that it was refused.
	exec(t, pool, `UPDATE pawl.command SET status = 'expired', code = NULL, state = NULL, body = NULL WHERE key = 'm-1'`)
	_, err := e.Admin().RetryMessage(t.Context(), m.Ref(), "ann", "")
	wantCode(t, err, workflow.KeyExpired)
}

func TestMessage_FailedActivity(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool, withBank, func(c *engine.Config) {
		c.Workflows = []workflow.Source{workflow.Define("task", 1,
			workflow.Start("begin", "open", none).Receive("bank", workflow.JSON(
				func(m workflow.Message, _ struct{}) (workflow.Address, workflow.None, error) {
					if m.Type != "begin" {
						return workflow.Address{}, workflow.None{}, workflow.ErrNotMine
					}
					return workflow.Address{}, workflow.None{}, nil
				})),
			workflow.Do("work", workflow.From("open"), "working", "done",
				func(context.Context, *workflow.Attempt, loan, workflow.None) (int, error) {
					return 0, workflow.Final(errors.New("no"))
				}, func(*workflow.Call, *loan, int) error { return nil }).
				OrElse("open", func(*workflow.Call, *loan, workflow.Failure) error { return nil }).
				Receive("bank", workflow.JSON(func(m workflow.Message, body struct{ ID string }) (workflow.Address, workflow.None, error) {
					return workflow.Address{Instance: uuid.MustParse(body.ID)}, workflow.None{}, nil
				})),
		).Final("done")}
	})
	begun := consumed(t, e, fromBank("m-0", "begin", `{}`))
	m := fromBank("m-1", "work", fmt.Sprintf(`{"ID":%q}`, begun.Instance))
	consumed(t, e, m)
	r, err := e.Await(t.Context(), transitions.Ref{Scope: "inbox:bank", Key: "m-1"})
	require.Truef(t, err == nil && workflow.CodeOf(r.Err()) == workflow.ActivityFailed, "got %+v, %v", r, err)
	r, err = e.Consume(t.Context(), m)
	assert.Truef(t, err == nil && r.Status == 409 && r.Replayed, "got %+v, %v", r, err)
	wantDead(t, e)
}

// A discarded message is answered as one that was refused, and may be taken back.
func TestDiscardedMessage_Redelivered(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t), withBank)
	m := fromBank("m-1", "paid", `{"loan":"l-1","amount":2}`).WithDefaults()
	_, err := e.Consume(t.Context(), m)
	wantCode(t, err, workflow.InstanceNotFound)
	for range 2 {
		d, err := e.Admin().DiscardMessage(t.Context(), m.Ref(), "ann", "a test of theirs")
		if err != nil || d.Status != inspect.MessageDiscarded || d.ChangedBy != "ann" || d.Reason != "a test of theirs" || d.Body != nil {
			t.Fatalf("got %+v, %v", d, err)
		}
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

// The message was consumed by SQL meanwhile. Its effect is committed, so the list does not show it as discarded.
func TestDiscard_ConsumedElsewhere(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool, withBank)
	m := fromBank("m-1", "paid", `{"loan":"l-1","amount":2}`).WithDefaults()
	_, err := e.Consume(t.Context(), m)
	wantCode(t, err, workflow.InstanceNotFound)
	sum := m.Hash()
	exec(t, pool, "SELECT pawl.consume('bank', 'm-1', $1)", sum[:])
	for range 2 {
		d, err := e.Admin().DiscardMessage(t.Context(), m.Ref(), "ann", "nobody needs it")
		assert.Truef(t, err == nil && d.Status == inspect.MessageRetried && d.ChangedBy == "ann", "got %+v, %v", d, err)
	}
	wantRetried(t, e, inspect.MessageDiscarded, "")
	r := consumed(t, e, m)
	assert.Truef(t, r.Status == 200 && r.Replayed, "its sender is told %+v", r)
	// The result for another payload does not apply to this one.
	other := fromBank("m-1", "paid", `{"loan":"l-1","amount":3}`).WithDefaults()
	_, err = e.Consume(t.Context(), other)
	wantCode(t, err, workflow.MessageReused)
	d, err := e.Admin().DiscardMessage(t.Context(), other.Ref(), "ann", "")
	assert.Truef(t, err == nil && d.Status == inspect.MessageDiscarded, "got %+v, %v", d, err)
}

// Two messages have one id, and neither was consumed. After one of them is discarded, the other can still be consumed.
func TestDiscardedMessage_IDIsFree(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool, withBank)
	good := fromBank("m-1", "paid", `{"loan":"l-1","amount":3}`).WithDefaults()
	bad := fromBank("m-1", "wrong", `{"loan":"l-1","amount":4}`).WithDefaults()
	for _, m := range []transitions.Message{good, bad} {
		if _, err := e.Consume(t.Context(), m); err == nil {
			t.Fatal("it was consumed")
		}
	}
	if d, err := e.Admin().DiscardMessage(t.Context(), bad.Ref(), "ann", "no such currency"); err != nil || d.Status != inspect.MessageDiscarded {
		t.Fatalf("%+v, %v", d, err)
	}
	consumed(t, e, fromBank("m-0", "applied", `{"loan":"l-1","amount":5}`))
	_, err := e.Consume(t.Context(), good)
	wantCode(t, err, workflow.MessageReused) // an operator has to choose
	r, err := e.Admin().RetryMessage(t.Context(), good.Ref(), "ann", "this one")
	assert.Truef(t, err == nil && r.Status == 200 && r.Version == 2, "got %+v, %v", r, err)
	_, err = e.Consume(t.Context(), bad)
	assert.Error(t, err, "what was discarded is consumed")
	_, err = e.Admin().RetryMessage(t.Context(), bad.Ref(), "ann", "both")
	assert.Error(t, err, "both are consumed")
	r = consumed(t, e, good)
	assert.Truef(t, r.Replayed && r.Version == 2, "got %+v", r)
}

func TestThereIsNothingToRetryOrDiscard(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t), withBank)
	for name, ref := range map[string]transitions.MessageRef{
		"unknown":               {Consumer: "bank", ID: "m"},
		"no consumer":           {ID: "m"},
		"cannot be stored":      {Consumer: "bank", ID: "\x00"},
		"a tenant's, not UTF-8": {Tenant: "\xff", Consumer: "bank", ID: "m"},
	} {
		if _, err := e.Admin().RetryMessage(t.Context(), ref, "ann", ""); workflow.CodeOf(err) != workflow.NotFound {
			t.Errorf("retry %s: %v", name, err)
		}
		if _, err := e.Admin().DiscardMessage(t.Context(), ref, "ann", ""); workflow.CodeOf(err) != workflow.NotFound {
			t.Errorf("discard %s: %v", name, err)
		}
	}
	_, err := e.Admin().RetryMessage(t.Context(), transitions.MessageRef{Consumer: "bank", ID: "m"}, "a\x00", "")
	wantCode(t, err, workflow.InvalidRequest)
	_, err = e.Admin().DiscardMessage(t.Context(), transitions.MessageRef{Consumer: "bank", ID: "m"}, "ann", "\xff")
	wantCode(t, err, workflow.InvalidRequest)
	_, _, err = e.Admin().DeadMessages(t.Context(), inspect.DeadMessageFilter{Status: "gone"})
	wantCode(t, err, workflow.InvalidRequest)
	_, _, err = e.Admin().DeadMessages(t.Context(), inspect.DeadMessageFilter{Consumer: "\x00"})
	wantCode(t, err, workflow.InvalidRequest)
}

func TestDeadMessages_Pages(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t), withBank)
	for i := range 5 {
		for _, m := range []transitions.Message{
			{Consumer: "post", ID: fmt.Sprint(i), Type: "x", Body: []byte("x")},
			{Consumer: "bank", ID: fmt.Sprint(i), Type: "x", Body: []byte("x")},
			{Consumer: "bank", ID: fmt.Sprint(i), Type: "x", Body: []byte("x"), Tenant: "acme"},
		} {
			_, err := e.Consume(t.Context(), m)
			require.Error(t, err, "it was consumed")
		}
	}
	for _, tt := range []struct{ consumer, want string }{
		{"", "bank0 bank1 bank2 bank3 bank4 post0 post1 post2 post3 post4 "}, {"bank", "bank0 bank1 bank2 bank3 bank4 "}, {"none", ""},
	} {
		got := ""
		for f, more := (inspect.DeadMessageFilter{Consumer: tt.consumer, Limit: 3}), true; more; {
			var list []inspect.DeadMessage
			var err error
			list, more, err = e.Admin().DeadMessages(t.Context(), f)
			require.Truef(t, err == nil && len(list) <= 3 && (!more || len(list) >= 3), "%d of them, more %v, %v", len(list), more, err)
			for _, f.After = range list {
				got += f.After.Consumer + f.After.ID + " "
			}
		}
		assert.Equalf(t, tt.want, got, "%q has", tt.consumer)
	}
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

// It is done, and whether it is still on the list is not known: so it has to come
// again, and has the same answer then.
func TestDeadMessage_RemovalFails(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool, withBank, func(c *engine.Config) { c.Retention.Off = true }) // else it waits for the list, too
	m := fromBank("m-1", "applied", `{"loan":"l-1","amount":5}`)
	m.Delivery = 2
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer rollback(t, tx)
	_, err = tx.Exec(t.Context(), `LOCK TABLE pawl.inbox_dead IN ACCESS EXCLUSIVE MODE`)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	blocked := make(chan error, 1)
	go func() {
		_, err := e.Consume(ctx, m)
		blocked <- err
	}()
	pgtest.WaitBlocked(t, pool, "inbox_dead")
	cancel()
	wantCode(t, <-blocked, workflow.TimedOut)
	rollback(t, tx)
	m.Delivery++
	r := consumed(t, e, m)
	assert.Truef(t, r.Replayed && r.Status == 201, "got %+v", r)
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
			assert.Truef(t, (d.BusinessKey == "" || d.Instance == loanID(d.BusinessKey)) && (d.Workflow == "") == (d.ID == "nobody's"),
				"%+v", d)
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
