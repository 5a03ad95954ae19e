package commit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/clock"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// deal is the data of the workflow of these tests, and note a payload.
type deal struct {
	Log []string `json:"log,omitempty"`
}

type note struct {
	Text string `json:"text"`
}

func (d *deal) add(format string, args ...any) { d.Log = append(d.Log, fmt.Sprintf(format, args...)) }

// dealWorkflow has everything that can be in flight: an activity that can be
// undone, one that undoes it, timers, a child.
func dealWorkflow(t *testing.T) *workflow.Workflow {
	t.Helper()
	write := func(text string) func(*workflow.Call, *deal, note) error {
		return func(_ *workflow.Call, d *deal, n note) error {
			d.add("%s %s", text, n.Text)
			return nil
		}
	}
	work := func(context.Context, *workflow.Attempt, deal, note) (note, error) { return note{}, nil }
	undo := func(context.Context, *workflow.Attempt, deal, note, *note) error { return nil }
	failed := func(_ *workflow.Call, d *deal, f workflow.Failure) error {
		d.add("failed %s", f.Kind)
		return nil
	}
	w, err := workflow.Define("deal", 1,
		workflow.Start("open", "opened", write("open")),
		workflow.Do("pay", workflow.From("opened", "unpaid"), "paying", "paid", work, func(_ *workflow.Call, d *deal, r note) error {
			if r.Text == "strange" {
				return workflow.Refuse("a strange result")
			}
			d.add("paid %s", r.Text)
			return nil
		}).OrElse("unpaid", failed).Undo(undo),
		workflow.Do("send", workflow.From("paid"), "sending", "sent", work, func(*workflow.Call, *deal, note) error { return nil }).
			OrElse("unsent", failed).Undoes("pay"),
		workflow.On("remind", workflow.From("opened", "unpaid"), workflow.Stay, write("remind")),
		workflow.On("expire", workflow.From("opened", "unpaid"), "gone", write("expire")),
		workflow.On("cancel", workflow.From("opened", "paying", "unpaid"), "gone", write("cancel")),
		workflow.On("close", workflow.From("sent", "unsent"), "gone", write("close")),
		workflow.On("branch", workflow.From("opened"), "branched", func(c *workflow.Call, d *deal, n note) error {
			c.Spawn(workflow.Child{Workflow: "deal", Transition: "open", Payload: n, End: "joined"})
			return nil
		}),
		workflow.On("joined", workflow.From("branched"), "gone", func(_ *workflow.Call, d *deal, e workflow.Ended[deal]) error {
			d.add("child %s: %v", e.State, e.Data.Log)
			return nil
		}),
	).Final("gone").
		After("reminder", workflow.From("opened"), time.Hour, "remind").
		After("expiry", workflow.From("opened", "unpaid"), 24*time.Hour, "expire").Build()
	require.NoError(t, err)
	return w
}

// worker takes what lands, as the room inflight does, and does nothing with it.
type worker struct {
	mu       sync.Mutex
	free     int
	reserved time.Time // when it was last asked for a worker
	list     []decide.FlightUpdate
}

func (w *worker) Reserve(string, *workflow.Step) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reserved = time.Now()
	w.free--
	if w.free < 0 {
		w.free = 0
		return false
	}
	return true
}

func (w *worker) Release(string, *workflow.Step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.free++
}

func (w *worker) Updated(list []decide.FlightUpdate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, list...)
}

// landed returns what has landed of a command, newest last.
func (w *worker) landed(key string) (list []decide.FlightUpdate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.list {
		if l.Key == key || l.Scope == key {
			list = append(list, l)
		}
	}
	return list
}

// bench is a running pipeline on a database of its own, with a clock that is set.
type bench struct {
	t      *testing.T
	pool   *pgxpool.Pool
	p      *Pipeline
	w      *workflow.Workflow
	worker *worker
	now    time.Time
	beside int // counts the commands of another tenant, of which every group has one; negative: none has
}

func newBench(t *testing.T, change ...func(*Config)) *bench {
	t.Helper()
	pool := pgtest.Pool(t)
	b := &bench{t: t, pool: pool, w: dealWorkflow(t), worker: &worker{free: 100}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		beside: -1}
	if strings.HasPrefix(t.Name(), "TestConcurrentTenants/") {
		b.beside = 0
	}
	c := testConfig(pool, b.w)
	for _, set := range change {
		set(&c)
	}
	b.p = New(c)
	b.p.config.Definitions = known(func(name string, version int) *workflow.Workflow {
		switch {
		case name == b.w.Name && version <= 1:
			return b.w
		case name == neighbour.Name:
			return neighbour
		}
		return nil
	})
	b.p.config.Flights, b.p.config.Node, b.p.config.Lease = b.worker, "node-a", 30*time.Second
	b.p.config.Clock = clock.New(func() time.Time { return b.now })
	require.NoError(t, b.p.Start(t.Context()))
	t.Cleanup(func() { b.p.Stop(context.Background()) })
	return b
}

// do submits commands together, so that they make one group where they are of
// one instance.
func (b *bench) do(ps ...*decide.Prepared) []transitions.Reply {
	b.t.Helper()
	ticket := b.p.Ticket()
	if b.beside >= 0 {
		return b.doBeside(ticket, ps)
	}
	ticket.SubmitMany(b.t.Context(), ps)
	return ticket.Wait(b.t.Context())
}

func (b *bench) one(p *decide.Prepared) transitions.Receipt {
	b.t.Helper()
	r := b.do(p)[0]
	if r.Err != nil {
		b.t.Fatalf("%s %s: %v", p.Transition, p.Key, r.Err)
	}
	return r.Receipt
}

func (b *bench) command(transition, key string, instance uuid.UUID) *decide.Prepared {
	b.t.Helper()
	p, err := decide.Prepare(transitions.Command{Key: key, Workflow: "deal", Transition: transition, Instance: instance,
		Payload: []byte(`{"text":"` + key + `"}`)}, b.w, uuid.New)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

func (b *bench) opened() uuid.UUID {
	b.t.Helper()
	return b.one(b.command("open", "open", uuid.Nil)).Instance
}

// ending is the outcome of the newest attempt that landed with the key.
func (b *bench) ending(key string, o decide.Outcome) *decide.Prepared {
	b.t.Helper()
	list := b.worker.landed(key)
	if len(list) == 0 {
		b.t.Fatalf("nothing landed of %q", key)
	}
	flight := list[len(list)-1].InFlight
	p, err := flight.Ending(o)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// claim takes the lease of a row that waits, as a worker does.
func (b *bench) claim(scope string) *decide.InFlight {
	b.t.Helper()
	f := &decide.InFlight{Ref: transitions.Ref{Tenant: "default", Scope: scope}, Workflow: "deal"}
	err := b.pool.QueryRow(b.t.Context(), `UPDATE pawl.command SET status = 'processing', attempt = attempt + 1, claimed_by = 'node-b',
		claimed_at = now(), locked_until = now() + interval '1 minute', run_at = NULL WHERE scope = $1 AND phase IS NOT NULL
		RETURNING key, phase, transition, instance, actor, request, attempt, fingerprint`, scope).
		Scan(&f.Key, &f.Phase, &f.Transition, &f.Instance, &f.Actor, &f.Request, &f.Attempt, (*bytes32)(&f.Fingerprint))
	if err != nil {
		b.t.Fatalf("claim in %s: %v", scope, err)
	}
	return f
}

type bytes32 [32]byte

func (b *bytes32) ScanBytes(v []byte) error {
	copy(b[:], v)
	return nil
}

func (b *bench) due(scope string) *decide.Prepared {
	b.t.Helper()
	p, err := b.claim(scope).Due(b.w)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// row is a command as it is stored: "status phase attempt".
func (b *bench) row(key string) string {
	b.t.Helper()
	var text string
	if err := b.pool.QueryRow(b.t.Context(), `SELECT coalesce(string_agg(concat_ws(' ', status, phase, 'attempt ' || attempt, code), '; '
		ORDER BY created_at), 'none')
		FROM pawl.command WHERE key = $1 OR scope = $1`, key).Scan(&text); err != nil {
		b.t.Fatal(err)
	}
	return text
}

func (b *bench) wantRow(key, want string) {
	b.t.Helper()
	if got := b.row(key); got != want {
		b.t.Errorf("the row of %s is %q, want %q", key, got, want)
	}
}

// history is the instance's audit trail: "transition:state", oldest first.
func (b *bench) history(id uuid.UUID) string {
	b.t.Helper()
	var text string
	if err := b.pool.QueryRow(b.t.Context(), `SELECT string_agg(transition || ':' || to_state, ' ' ORDER BY version) FROM pawl.audit
		WHERE instance = $1`, id).
		Scan(&text); err != nil {
		b.t.Fatal(err)
	}
	return text
}

func (b *bench) wantHistory(id uuid.UUID, want string) {
	b.t.Helper()
	if got := b.history(id); got != want {
		b.t.Errorf("the history is %q, want %q", got, want)
	}
}

// timers are the timers of an instance that run: "name@due".
func (b *bench) timers(id uuid.UUID) string {
	b.t.Helper()
	var text string
	if err := b.pool.QueryRow(b.t.Context(), `SELECT coalesce(string_agg(split_part(scope, ':', 4) || '@' || to_char(run_at AT TIME ZONE 'UTC',
		'DD HH24'), ' ' ORDER BY scope), '')
		FROM pawl.command WHERE scope LIKE 'pawl:timer:' || $1 || ':%' AND phase IS NOT NULL`, id.String()).Scan(&text); err != nil {
		b.t.Fatal(err)
	}
	return text
}

func succeeded(text string) decide.Outcome {
	return decide.Outcome{Result: []byte(`{"text":"` + text + `"}`)}
}

func failure(unknown bool) decide.Outcome {
	return decide.Outcome{Failure: &workflow.Failure{Kind: workflow.FailureError, Message: "declined", Attempts: 1, Unknown: unknown}}
}

func codeOf(err error) workflow.Code {
	if e, ok := errors.AsType[*workflow.Error](err); ok {
		return e.Code
	}
	return ""
}

func TestAcceptedThenDoneIsTwoCommitsAndOneCommand(t *testing.T) {
	b := newBench(t)
	id := b.opened()
	r := b.one(b.command("pay", "p1", id))
	assert.Truef(t, r.InFlight() && r.Record.Status == transitions.Processing && r.Record.Attempt == 1 && r.Version == 2 && r.Position == 2,
		"accepted with %+v, %+v", r, r.Record)
	b.wantRow("p1", "processing working attempt 1")
	if dup := b.one(b.command("pay", "p1", id)); !dup.InFlight() || !dup.Replayed || dup.Record.ClaimedBy != "node-a" || dup.Position != 2 {
		t.Errorf("a duplicate in flight got %+v", dup)
	}
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

func TestAFailureGoesToItsStateAndIsStored(t *testing.T) {
	b := newBench(t)
	id := b.opened()
	b.one(b.command("pay", "p1", id))
	r := b.one(b.ending("p1", failure(false)))
	e := r.Err()
	assert.Equalf(t, workflow.ActivityFailed, codeOf(e), "failed with %v", e)
	b.wantRow("p1", "failed_final attempt 1 409")
	b.wantHistory(id, "open:opened pay.accepted:paying pay.failed:unpaid")
	b.wantRow("pawl:undo:"+id.String(), "none")
	if again := b.one(b.command("pay", "p1", id)); !again.Replayed || string(again.Body) != string(r.Body) {
		t.Errorf("replayed %+v, want %s", again, r.Body)
	}
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
			if list := b.worker.landed("p1"); !list[len(list)-1].Stop {
				b.t.Errorf("the worker was not told to stop: %+v", list)
			}
			e := b.worker.landed("p1")[0].InFlight
			p, err := e.Ending(succeeded("late"))
			if err != nil {
				b.t.Fatal(err)
			}
			if r := b.one(p); codeOf(r.Err()) != workflow.CommandCancelled {
				b.t.Errorf("it ended with %s", r.Body)
			}
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
			if key, err := f.EffectKey(); err != nil || key != transitions.EffectKey(transitions.Ref{Tenant: "default", Scope: "deal:" + id.String(),
				Key: "p1"}) {
				t.Errorf("the undo is of effect %q, %v", key, err)
			}
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
	if err != nil || string(asked.Result) != `{"text":"ok"}` || string(asked.Payload) != `{"text":"p1"}` || f.Transition != "pay" {
		t.Errorf("undoes %+v with %+v, %v", f, asked, err)
	}
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

func TestAScheduledRefusalIsStored(t *testing.T) {
	b := newBench(t)
	id := b.opened()
	later := b.command("close", "c1", id)
	later.NotBefore = b.now.Add(time.Minute)
	b.one(later)
	b.now = b.now.Add(time.Minute)
	r := b.one(b.due("deal:" + id.String()))
	assert.Equalf(t, workflow.IllegalTransition, codeOf(r.Err()), "got %s", r.Body)
	b.wantRow("c1", "failed_final attempt 1 409")
}

func TestChild_StartAndCompletion(t *testing.T) {
	b := newBench(t)
	parent := b.opened()
	b.one(b.command("branch", "b1", parent))
	var child uuid.UUID
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT id FROM pawl.instance WHERE workflow = 'deal' AND id <> $1`,
		parent).Scan(&child))
	b.wantHistory(child, "open:opened")
	assert.Equal(t, "expiry@02 12 reminder@01 13", b.timers(child), "the child's timers")
	b.one(b.command("cancel", "c1", child))
	b.one(b.due("pawl:end:" + child.String()))
	b.wantHistory(parent, "open:opened branch:branched joined:gone")
	var positions int
	err := b.pool.QueryRow(t.Context(),
		`SELECT count(DISTINCT position) FROM pawl.audit WHERE position BETWEEN 1 AND 5`).Scan(&positions)
	assert.Truef(t, err == nil && positions == 5, "%d positions, %v", positions, err)
}

func (b *bench) stick(key string) {
	b.t.Helper()
	if _, err := b.pool.Exec(b.t.Context(), `UPDATE pawl.command
		SET status = 'failed_retryable', locked_until = NULL, run_at = NULL, stuck = 'test' WHERE key = $1`, key); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) operation(id uuid.UUID, key string, o transitions.Operation) *decide.Prepared {
	b.t.Helper()
	p, err := decide.Operate(transitions.Command{Key: key, Workflow: "deal", Instance: id, Actor: "ann"}, o)
	if err != nil {
		b.t.Fatal(err)
	}
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
			if again := b.one(b.operation(id, "op1", o)); !again.Replayed || string(again.Body) != string(first.Body) {
				t.Errorf("replayed %s, want %s", again.Body, first.Body)
			}
			other := b.one(b.operation(id, "op2", o))
			assert.Equalf(t, workflow.NotStuck, codeOf(other.Err()), "a second operation got %s", other.Body)
			var actor, reason string
			err := b.pool.QueryRow(t.Context(), `SELECT actor, reason FROM pawl.audit WHERE version = 3`).Scan(&actor, &reason)
			assert.Truef(t, err == nil && actor == "ann" && strings.Contains(reason, "I looked"),
				"audited as %q, %q, %v", actor, reason, err)
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
	assert.Falsef(t, codeOf(replies[1].Err) != workflow.Locked && codeOf(replies[1].Receipt.Err()) != workflow.NotStuck,
		"%+v", replies[1])
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
	unheard := func() (list []decide.FlightUpdate) {
		p := b.command("pay", "p1", id)
		o := &op{p: p, route: routeOf(p), batch: newBatch(), uncertain: true, unheard: []decide.InFlight{
			{Ref: transitions.Ref{Scope: scope, Key: "p1"}, Attempt: 1, CreatedAt: b.now}}}
		b.p.commit(t.Context(), []*op{o})
		receipt, err := o.outcome()
		require.Truef(t, err == nil && !receipt.Refused(), "%+v, %v", receipt, err)
		for _, l := range b.worker.landed("p1") {
			if l.Unheard {
				list = append(list, l)
			}
		}
		return list
	}
	assert.Empty(t, unheard(), "told of the accept that was written")
	if list := unheard(); len(list) != 1 || list[0].Attempt != 1 || list[0].Scope != scope || !list[0].CreatedAt.Equal(b.now) {
		t.Errorf("told of the one that was found: %+v", list)
	}
}
