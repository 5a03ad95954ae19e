package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/clock"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/schema/pooler"
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
	).Final("gone").After("reminder", workflow.From("opened"), time.Hour, "remind").
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
	require.Truef(b.t, r.Err == nil, "%s %s: %v", p.Transition, p.Key, r.Err)
	return r.Receipt
}

func (b *bench) command(transition, key string, instance uuid.UUID) *decide.Prepared {
	b.t.Helper()
	p, err := decide.Prepare(transitions.Command{Key: key, Workflow: "deal", Transition: transition, Instance: instance,
		Payload: []byte(`{"text":"` + key + `"}`)}, b.w, uuid.New)
	require.NoError(b.t, err)
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
	require.Truef(b.t, len(list) != 0, "nothing landed of %q", key)
	flight := list[len(list)-1].InFlight
	p, err := flight.Ending(o)
	require.NoError(b.t, err)
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
	require.NoErrorf(b.t, err, "claim in %s: %v", scope, err)
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
	require.NoError(b.t, err)
	return p
}

// text reads a text.
func (b *bench) text(sql string, args ...any) (text string) {
	b.t.Helper()
	require.NoError(b.t, b.pool.QueryRow(b.t.Context(), sql, args...).Scan(&text), sql)
	return text
}

// row is a command as it is stored: "status phase attempt".
func (b *bench) row(key string) string {
	b.t.Helper()
	return b.text(`SELECT coalesce(string_agg(concat_ws(' ', status, phase, 'attempt ' || attempt, code), '; ' ORDER BY created_at), 'none')
		FROM pawl.command WHERE key = $1 OR scope = $1`, key)
}

func (b *bench) wantRow(key, want string) {
	b.t.Helper()
	assert.Equal(b.t, want, b.row(key), key)
}

// history is the instance's audit trail: "transition:state", oldest first.
func (b *bench) history(id uuid.UUID) string {
	b.t.Helper()
	return b.text(`SELECT string_agg(transition || ':' || to_state, ' ' ORDER BY version) FROM pawl.audit WHERE instance = $1`, id)
}

func (b *bench) wantHistory(id uuid.UUID, want string) {
	b.t.Helper()
	assert.Equal(b.t, want, b.history(id))
}

// timers are the timers of an instance that run: "name@due".
func (b *bench) timers(id uuid.UUID) string {
	b.t.Helper()
	return b.text(`SELECT coalesce(string_agg(split_part(scope, ':', 4) || '@' || to_char(run_at AT TIME ZONE 'UTC', 'DD HH24'), ' '
		ORDER BY scope), '') FROM pawl.command WHERE scope LIKE 'pawl:timer:' || $1 || ':%' AND phase IS NOT NULL`, id.String())
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

// testPipeline is a pipeline on the pool's database that is not started.
func testPipeline(pool *pgxpool.Pool, ws ...*workflow.Workflow) *Pipeline {
	return New(testConfig(pool, ws...))
}

func testConfig(pool *pgxpool.Pool, ws ...*workflow.Workflow) Config {
	return Config{
		Connect: func(ctx context.Context, name string) (*pgx.Conn, error) {
			c := pool.Config().ConnConfig.Copy()
			c.RuntimeParams["application_name"] = name
			return pgx.ConnectConfig(ctx, c)
		},
		Pooled: pooler.Expected(pool.Config().ConnConfig),
		Schema: schema.Default, Statements: NewStatements(schema.For(schema.Default)),
		Definitions: known(func(name string, version int) *workflow.Workflow {
			for _, w := range ws {
				if w.Name == name && w.Version == version {
					return w
				}
			}
			return nil
		}),
		Clock:     clock.New(nil),
		Committed: func(string, int64, func() []transitions.Event) {},
		Log:       slog.New(slog.DiscardHandler),
		Limits: Limits{Committers: 2, RetryWorkers: 2, QueueSize: 64, QueueBytes: 1 << 20, GroupSize: 16, GroupBytes: 1 << 20,
			LockWait: time.Minute, Outage: time.Minute, HookTimeout: time.Minute},
	}
}

// known finds the workflows of a test, whose answers are replayed for an hour.
type known func(name string, version int) *workflow.Workflow

func (k known) Find(name string, version int) *workflow.Workflow { return k(name, version) }
func (known) Horizons(string) workflow.Horizons                  { return workflow.Horizons{}.Resolve(time.Hour) }

// transitionsOf is the command again, for a tenant and with a text.
func transitionsOf(p *decide.Prepared, tenant, text string) transitions.Command {
	c := p.Command
	c.Tenant, c.Scope, c.Payload = tenant, "", []byte(`{"text":"`+text+`"}`)
	if p.Creates {
		c.Instance = uuid.Nil
	}
	return c
}

func TestMain(m *testing.M) { tables.Main(m) }
