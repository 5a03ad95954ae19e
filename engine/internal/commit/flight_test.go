package commit

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestAcceptedThenDoneIsTwoCommitsAndOneCommand(t *testing.T) {
	b := newBench(t)
	id := b.opened()
	r := b.one(b.command("pay", "p1", id))
	assert.Truef(t, r.InFlight() && r.Record.Status == transitions.Processing && r.Record.Attempt == 1 && r.Version == 2 && r.Position == 2,
		"accepted with %+v, %+v", r, r.Record)
	b.wantRow("p1", "processing working attempt 1")
	dup := b.one(b.command("pay", "p1", id))
	assert.Truef(t, dup.InFlight() && dup.Replayed && dup.Record.ClaimedBy == "node-a" && dup.Position == 2,
		"a duplicate in flight got %+v", dup)
	done := b.one(b.ending("p1", succeeded("ok")))
	result, err := done.Result()
	assert.Truef(t, err == nil && result.State == "paid" && result.Position == 3, "done with %+v, %v", result, err)
	b.wantRow("p1", "succeeded attempt 1 200")
	replay := b.one(b.command("pay", "p1", id))
	assert.Truef(t, replay.Replayed && string(replay.Body) == string(done.Body) && replay.Position == 3,
		"replayed %+v, want the body of %+v", replay, done)
	b.wantHistory(id, "open:opened pay.accepted:paying pay:paid")
}

// A lease begins to run out at the time at which its group was decided. What is sent
// after that may be under way for long, and must not make it look younger.
func TestALeaseIsFromBeforeItsCommitIsSent(t *testing.T) {
	b := newBench(t)
	b.one(b.command("pay", "p1", b.opened()))
	landed := b.worker.landed("p1")
	assert.Truef(t, len(landed) == 1 && !landed[0].Since.IsZero() && !landed[0].Since.After(b.worker.reserved),
		"a worker was asked for at %s, before the commit was sent; the lease is from %v", b.worker.reserved, landed)
}

func TestWithoutAFreeWorkerTheCommandWaits(t *testing.T) {
	b := newBench(t)
	b.worker.free = 0
	id := b.opened()
	r := b.one(b.command("pay", "p1", id))
	assert.Truef(t, r.Record.Status == transitions.Pending && r.Record.RunAt.Equal(b.now), "accepted with %+v", r.Record)
	b.wantRow("p1", "pending working attempt 0")
}

func TestALostAttemptCompletesNothing(t *testing.T) {
	b := newBench(t)
	id := b.opened()
	b.one(b.command("pay", "p1", id))
	zombie := b.ending("p1", succeeded("zombie"))
	b.claim("deal:" + id.String())
	before := b.history(id)
	r := b.do(zombie)[0]
	assert.Equalf(t, workflow.LeaseLost, codeOf(r.Err), "a zombie's completion was answered with %+v, %v", r.Receipt, r.Err)
	b.wantRow("p1", "processing working attempt 2")
	b.wantHistory(id, before)
}

func TestUnknownOutcomeIsUndone(t *testing.T) {
	tests := []struct {
		name string
		end  func(b *bench, id uuid.UUID)
		want string
	}{
		{"a failure of unknown effect", func(b *bench, id uuid.UUID) { b.one(b.ending("p1", failure(true))) },
			"open:opened pay.accepted:paying pay.failed:unpaid"},
		{"a refused result", func(b *bench, id uuid.UUID) { b.one(b.ending("p1", succeeded("strange"))) },
			"open:opened pay.accepted:paying pay.failed:unpaid"},
		{"success after the instance has left", func(b *bench, id uuid.UUID) {
			b.one(b.command("cancel", "c1", id))
			list := b.worker.landed("p1")
			assert.Truef(b.t, list[len(list)-1].Stop, "the worker was not told to stop: %+v", list)
			e := b.worker.landed("p1")[0].InFlight
			p, err := e.Ending(succeeded("late"))
			require.NoError(b.t, err)
			r := b.one(p)
			assert.Truef(b.t, codeOf(r.Err()) == workflow.CommandCancelled, "it ended with %s", r.Body)
		}, "open:opened pay.accepted:paying cancel:gone"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			id := b.opened()
			b.one(b.command("pay", "p1", id))
			test.end(b, id)
			b.wantHistory(id, test.want)
			b.wantRow("p1", "failed_final attempt 1 409")
			scope := "pawl:undo:" + id.String()
			b.wantRow(scope, "pending undoing attempt 0")
			f := b.claim(scope)
			key, err := f.EffectKey()
			assert.Truef(t, err == nil && key == transitions.EffectKey(transitions.Ref{Tenant: "default", Scope: "deal:" + id.String(),
				Key: "p1"}), "the undo is of effect %q, %v", key, err)
			p, err := f.Ending(decide.Outcome{})
			require.NoError(t, err)
			b.one(p)
			if !strings.HasSuffix(b.history(id), " pay.undone:"+strings.Split(test.want, ":")[len(strings.Split(test.want, ":"))-1]) {
				t.Errorf("the history is %q", b.history(id))
			}
			b.wantRow(scope, "succeeded attempt 1 200")
		})
	}
}

func TestFailure_UndoesEffects(t *testing.T) {
	b := newBench(t)
	id := b.opened()
	b.one(b.command("pay", "p1", id))
	b.one(b.ending("p1", succeeded("ok")))
	b.one(b.command("send", "s1", id))
	b.one(b.ending("s1", failure(false)))
	f := b.claim("pawl:undo:" + id.String())
	asked, err := f.Asked()
	assert.Truef(t, err == nil && string(asked.Result) == `{"text":"ok"}` && string(asked.Payload) == `{"text":"p1"}` &&
		f.Transition == "pay", "undoes %+v with %+v, %v", f, asked, err)
}

func TestAcceptAndCancelInOneGroup(t *testing.T) {
	b := newBench(t)
	id := b.opened()
	replies := b.do(b.command("pay", "p1", id), b.command("cancel", "c1", id), b.command("pay", "p1", id))
	for i, r := range replies {
		require.NoErrorf(t, r.Err, "%d", i)
	}
	assert.Truef(t, replies[0].Receipt.InFlight() && replies[2].Receipt.InFlight(), "%+v", replies)
	b.wantHistory(id, "open:opened pay.accepted:paying cancel:gone")
	var by string
	err := b.pool.QueryRow(t.Context(), `SELECT cancelled_by FROM pawl.command WHERE key = 'p1'`).Scan(&by)
	assert.Truef(t, err == nil && by == "local", "cancelled by %q, %v", by, err)
	assert.Falsef(t, b.worker.free != 100 && b.row("p1") == "pending working attempt 0", "%d workers are free", b.worker.free)
}

func TestTimersFollowTheState(t *testing.T) {
	b := newBench(t)
	id := b.opened()
	assert.Equal(t, "expiry@02 12 reminder@01 13", b.timers(id), "after open")
	b.now = b.now.Add(time.Hour)
	b.one(b.due("pawl:timer:" + id.String() + ":reminder"))
	b.wantHistory(id, "open:opened remind:opened")
	assert.Equal(t, "expiry@02 12", b.timers(id), "after the reminder")
	b.one(b.command("pay", "p1", id)) // leaves the states of both
	assert.Equal(t, "", b.timers(id), "while paying")
	b.one(b.ending("p1", failure(false)))
	assert.Equal(t, "expiry@02 13", b.timers(id), "unpaid")
	b.one(b.due("pawl:timer:" + id.String() + ":expiry"))
	assert.Equal(t, "", b.timers(id), "gone")
	b.wantHistory(id, "open:opened remind:opened pay.accepted:paying pay.failed:unpaid expire:gone")
}

func TestATimerWhoseStateWasLeftFiresNoMore(t *testing.T) {
	b := newBench(t)
	id := b.opened()
	scope := "pawl:timer:" + id.String() + ":expiry"
	firing := b.due(scope)
	replies := b.do(b.command("pay", "p1", id), firing) // left in the very group
	assert.Truef(t, replies[0].Err == nil && codeOf(replies[1].Err) == workflow.LeaseLost, "%+v", replies)
	b.one(b.ending("p1", failure(false))) // armed again
	r := b.do(firing)[0]
	assert.Equalf(t, workflow.LeaseLost, codeOf(r.Err), "the timer of the first stay fired in the second: %+v", r)
	b.wantHistory(id, "open:opened pay.accepted:paying pay.failed:unpaid")
	assert.Equal(t, "expiry@02 12", b.timers(id), "timers")
}

func TestOneGroupThatLeavesAndReturnsArmsAnew(t *testing.T) {
	b := newBench(t)
	id := b.opened()
	b.one(b.command("pay", "p1", id))
	b.now = b.now.Add(3 * time.Hour)
	ending := b.ending("p1", failure(false))
	for _, r := range b.do(ending, b.command("remind", "r1", id), b.command("pay", "p2", id)) {
		require.NoError(t, r.Err)
	}
	b.wantHistory(id, "open:opened pay.accepted:paying pay.failed:unpaid remind:unpaid pay.accepted:paying")
	assert.Equal(t, "", b.timers(id), "timers")
}

func TestAScheduledCommandIsDecidedAtItsTime(t *testing.T) {
	b := newBench(t)
	id := b.opened()
	later := b.command("cancel", "c1", id)
	later.NotBefore = b.now.Add(time.Minute)
	r := b.one(later)
	assert.Truef(t, r.InFlight() && r.Record.Phase == transitions.Scheduled && r.Version == 0, "scheduled with %+v %+v", r, r.Record)
	b.wantRow("c1", "pending scheduled attempt 0")
	b.now = b.now.Add(time.Minute)
	done := b.one(b.due("deal:" + id.String()))
	b.wantHistory(id, "open:opened cancel:gone")
	replay := b.one(later)
	assert.Truef(t, replay.Replayed && string(replay.Body) == string(done.Body), "replayed %s, want %s", replay.Body, done.Body)
}

func TestChild_StartAndCompletion(t *testing.T) {
	b := newBench(t)
	parent := b.opened()
	b.one(b.command("branch", "b1", parent))
	var child uuid.UUID
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT id FROM pawl.instance WHERE workflow = 'deal' AND id <> $1`, parent).Scan(&child))
	b.wantHistory(child, "open:opened")
	assert.Equal(t, "expiry@02 12 reminder@01 13", b.timers(child), "the child's timers")
	b.one(b.command("cancel", "c1", child))
	b.one(b.due("pawl:end:" + child.String()))
	b.wantHistory(parent, "open:opened branch:branched joined:gone")
	var positions int
	err := b.pool.QueryRow(t.Context(), `SELECT count(DISTINCT position) FROM pawl.audit WHERE position BETWEEN 1 AND 5`).Scan(&positions)
	assert.Truef(t, err == nil && positions == 5, "%d positions, %v", positions, err)
}

func (b *bench) stick(key string) {
	b.t.Helper()
	_, err := b.pool.Exec(b.t.Context(), `UPDATE pawl.command
		SET status = 'failed_retryable', locked_until = NULL, run_at = NULL, stuck = 'test' WHERE key = $1`, key)
	require.NoError(b.t, err)
}

func (b *bench) operation(id uuid.UUID, key string, o transitions.Operation) *decide.Prepared {
	b.t.Helper()
	p, err := decide.Operate(transitions.Command{Key: key, Workflow: "deal", Instance: id, Actor: "ann"}, o)
	require.NoError(b.t, err)
	return p
}

func TestStuckOperations_AuditAndReplay(t *testing.T) {
	tests := []struct {
		action transitions.Action
		result string
		row    string
		want   string
	}{
		{transitions.Retry, "", "pending working attempt 1", "open:opened pay.accepted:paying pay.retried:paying"},
		{transitions.Resolve, `{"text":"by hand"}`, "succeeded attempt 1 200", "open:opened pay.accepted:paying pay:paid"},
		{transitions.Abandon, "", "failed_final attempt 1 409", "open:opened pay.accepted:paying pay.failed:unpaid"},
	}
	for _, test := range tests {
		t.Run(string(test.action), func(t *testing.T) {
			b := newBench(t)
			id := b.opened()
			b.one(b.command("pay", "p1", id))
			b.stick("p1")
			o := transitions.Operation{Action: test.action, Reason: "I looked",
				Target: transitions.CommandRef{Scope: "deal:" + id.String(), Key: "p1"}}
			if test.result != "" {
				o.Result = []byte(test.result)
			}
			first := b.one(b.operation(id, "op1", o))
			b.wantRow("p1", test.row)
			b.wantHistory(id, test.want)
			again := b.one(b.operation(id, "op1", o))
			assert.Truef(t, again.Replayed && string(again.Body) == string(first.Body), "replayed %s, want %s", again.Body, first.Body)
			other := b.one(b.operation(id, "op2", o))
			assert.Equalf(t, workflow.NotStuck, codeOf(other.Err()), "a second operation got %s", other.Body)
			var actor, reason string
			err := b.pool.QueryRow(t.Context(), `SELECT actor, reason FROM pawl.audit WHERE version = 3`).Scan(&actor, &reason)
			assert.Truef(t, err == nil && actor == "ann" && strings.Contains(reason, "I looked"), "audited as %q, %q, %v", actor, reason, err)
		})
	}
}

func TestTwoOperationsOnOneCommandInOneGroup(t *testing.T) {
	b := newBench(t)
	id := b.opened()
	b.one(b.command("pay", "p1", id))
	b.stick("p1")
	o := transitions.Operation{Action: transitions.Abandon, Target: transitions.CommandRef{Scope: "deal:" + id.String(), Key: "p1"}}
	replies := b.do(b.operation(id, "op1", o), b.operation(id, "op2", o))
	assert.Truef(t, replies[0].Err == nil && !replies[0].Receipt.Refused(), "%+v", replies[0])
	assert.Falsef(t, codeOf(replies[1].Err) != workflow.Locked && codeOf(replies[1].Receipt.Err()) != workflow.NotStuck, "%+v", replies[1])
}

func TestPausedInstance_FinishesInFlight(t *testing.T) {
	b := newBench(t)
	id := b.opened()
	b.one(b.command("pay", "p1", id))
	b.one(b.operation(id, "stop", transitions.Operation{Action: transitions.Pause, Reason: "audit"}))
	r := b.do(b.command("cancel", "c1", id))[0]
	assert.Equalf(t, workflow.Paused, codeOf(r.Err), "a command on a paused instance got %+v", r)
	b.one(b.ending("p1", succeeded("ok")))
	b.one(b.operation(id, "go", transitions.Operation{Action: transitions.Resume}))
	b.one(b.command("send", "s1", id))
	b.wantHistory(id, "open:opened pay.accepted:paying pawl.paused:paying pay:paid pawl.resumed:paid send.accepted:sending")
}

// Writing the rows proves that no earlier run was committed. A run that finds the rows may have started the command ambiguously.
func TestAmbiguousLease_LaterRun(t *testing.T) {
	b := newBench(t)
	id := b.opened()
	scope := "deal:" + id.String()
	ambiguous := func() (list []decide.FlightUpdate) {
		p := b.command("pay", "p1", id)
		o := &op{p: p, route: routeOf(p), batch: newBatch(), uncertain: true, ambiguous: []decide.InFlight{
			{Ref: transitions.Ref{Scope: scope, Key: "p1"}, Attempt: 1, CreatedAt: b.now}}}
		b.p.commit(t.Context(), []*op{o})
		receipt, err := o.outcome()
		require.Truef(t, err == nil && !receipt.Refused(), "%+v, %v", receipt, err)
		for _, l := range b.worker.landed("p1") {
			if l.Ambiguous {
				list = append(list, l)
			}
		}
		return list
	}
	assert.Empty(t, ambiguous(), "told of the accept that was written")
	list := ambiguous()
	assert.Truef(t, len(list) == 1 && list[0].Attempt == 1 && list[0].Scope == scope && list[0].CreatedAt.Equal(b.now),
		"told of the one that was found: %+v", list)
}

// The operation has a position in the log; the scheduled command that it abandons has none. Awaiting that returns the bytes of its replays.
func TestAwaitAbandoned_EqualsReplay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.opened()
	later, err := decide.Prepare(transitions.Command{Key: "later", Workflow: "deal", Transition: "cancel", Instance: id,
		Payload: []byte(`{"text":"later"}`), Options: transitions.Options{NotBefore: b.now.Add(time.Hour)}}, b.w, uuid.New)
	require.NoError(t, err)
	b.one(later)
	_, err = b.pool.Exec(t.Context(), `UPDATE pawl.command SET status = 'failed_retryable', run_at = NULL, stuck = 'undecidable'
		WHERE key = 'later'`)
	require.NoError(t, err)
	abandon, err := decide.Operate(transitions.Command{Key: "abandon", Workflow: "deal", Instance: id},
		transitions.Operation{Action: transitions.Abandon, Target: transitions.CommandRef{Scope: later.Scope, Key: later.Key}})
	require.NoError(t, err)
	done := b.one(abandon)
	assert.NotEqual(t, int64(0), done.Position, "the operation has no place in the log")
	list := b.worker.landed("later")
	told := list[len(list)-1].Receipt
	require.NotNil(t, told, "who awaits it is told nothing")
	replay := b.one(later)
	assert.Truef(t, string(told.Body) == string(replay.Body) && told.Position == replay.Position && told.Status == replay.Status &&
		told.Version == replay.Version, "told:     %d %s\nreplayed: %d %s", told.Position, told.Body, replay.Position, replay.Body)
}
