package pawltest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// steady is a workflow whose activities do the same on an engine and in a run:
// what they do is in the payload, and depends on the number of the attempt. Each
// begins with a call of begin.
func steady(begin func()) *workflow.Definition[move] {
	work := func(_ context.Context, a *workflow.Attempt, _ move, n note) (note, error) {
		begin()
		switch {
		case n.Text == "never":
			return note{}, workflow.Final(errBusy)
		case n.Text == "busy once" && a.Number == 1, n.Text == "busy":
			return note{}, errBusy
		case n.Text == "late" && a.Number == 1:
			return note{}, fmt.Errorf("dial: %w", context.DeadlineExceeded)
		}
		return note{Text: fmt.Sprintf("attempt %d of %.6s", a.Number, a.Key)}, nil
	}
	undo := func(context.Context, *workflow.Attempt, move, note, *note) error { return nil }
	dream := func(context.Context, *workflow.Attempt, move, note) (note, error) {
		begin()
		return note{Text: "a call"}, nil
	}
	wake := func(_ context.Context, _ *workflow.Attempt, _ move, _ note, dreamt *note) error {
		if dreamt.Text != "a call" {
			return workflow.Final(fmt.Errorf("that was no dream: %s", dreamt.Text))
		}
		return nil
	}
	twice := workflow.Retry{Attempts: 2, First: time.Second, Max: time.Second}
	return workflow.Define("move", 1,
		workflow.Start("book", "ready", write("book")).BusinessKey(func(n note) string { return n.Text }),
		workflow.Start("begin", "ready", write("begin")),
		workflow.On("write", workflow.From("ready", "calling"), workflow.Stay, write("write")),
		workflow.On("helped", workflow.From("ready"), workflow.Stay, func(_ *workflow.Call, d *move, e workflow.Ended[move]) error {
			d.Notes = append(d.Notes, fmt.Sprint("helped by ", e.Data.Notes))
			return nil
		}),
		workflow.Do("call", workflow.From("ready"), "calling", "ready", work, write("called")).OrElse("ready",
			noteFailure).Retry(twice).Undo(undo),
		workflow.Do("carry", workflow.From("ready"), "carrying", "ready", work, write("carried")).OrElse("ready",
			noteFailure).Retry(twice).AskOperator().Settles("call"),
		workflow.Do("finish", workflow.From("ready"), "finishing", "gone", work, write("finished")).OrElse("ready",
			noteFailure).Retry(twice).Undoes("call"),
		workflow.On("remind", workflow.From("ready"), workflow.Stay, write("remind")),
		workflow.On("begin", workflow.From("ready", "resting"), workflow.Stay, write("begin again")),
		workflow.Do("call", workflow.From("resting"), "dreaming", workflow.Stay, dream, write("dreamt of")).OrElse("ready",
			noteFailure).Undo(wake),
		workflow.On("check", workflow.From("ready", "calling", "finishing"), workflow.Stay, write("check")).NotBy("finish",
			"call").NotByLast("write"),
		workflow.On("leave", workflow.From("ready", "calling", "carrying", "resting"), "gone", write("leave")),
		workflow.On("rest", workflow.From("ready"), "resting", write("rest")),
		workflow.Do("move", workflow.From("ready", "resting"), "moving", "gone", work, write("moved")).OrElseFrom(wakeUp,
			noteFailure).Retry(twice),
	).Final("gone").After("reminder", workflow.From("ready"), time.Hour, "remind").
		At("term", workflow.From("ready"), func(d move) time.Time { return d.Until }, "leave")
}

// wakeUp is where a move that failed leaves.
func wakeUp(from workflow.State) workflow.State {
	if from == "resting" {
		return "ready"
	}
	return workflow.Stay
}

// twins are a run and a real engine that are told the same.
type twins struct {
	t    *testing.T
	sim  *pawltest.Sim
	e    *engine.Engine
	pool *pgxpool.Pool
	now  atomic.Int64 // of the engine: nanoseconds since the beginning
	keys []string     // the business keys
	gate sync.RWMutex // the engine's attempts pass it while the two come to rest, as those of a run
}

func newTwins(t *testing.T) *twins {
	w := &twins{t: t, sim: pawltest.Run(t, steady(func() {})), pool: pawltest.Postgres(t)}
	w.gate.Lock()
	passed := func() {
		w.gate.RLock()
		defer w.gate.RUnlock()
	}
	e, err := engine.New(engine.Config{Pool: w.pool, Workflows: []workflow.Source{steady(passed)}, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return pawltest.Begin.Add(time.Duration(w.now.Load())) }})
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context()))
	t.Cleanup(func() {
		w.gate.Unlock()
		e.Stop(context.Background())
	})
	w.e = e
	return w
}

// submit tells both a command and compares the answers, but for what names a
// place in the log or a time.
func (w *twins) submit(c transitions.Command) {
	w.t.Helper()
	got, gotErr := w.sim.Submit(c)
	want, wantErr := w.e.Submit(w.t.Context(), c)
	w.compare(c.Transition+" "+c.Key, got, gotErr, want, wantErr)
}

func (w *twins) compare(what string, got transitions.Receipt, gotErr error, want transitions.Receipt, wantErr error) {
	w.t.Helper()
	if a, b := shortly(got, gotErr), shortly(want, wantErr); a != b {
		w.t.Errorf("%s: the run answers %s\nthe engine %s", what, a, b)
	}
}

func shortly(r transitions.Receipt, err error) string {
	body, _, _ := strings.Cut(string(r.Body), `,"position"`)
	before, after, _ := strings.Cut(body, `"at":`)
	_, after, _ = strings.Cut(after, ",")
	if e, is := errors.AsType[*workflow.Error](err); is {
		err = &workflow.Error{Code: e.Code, Message: e.Message} // the cause has a stack
	}
	return fmt.Sprint(r.Status, r.Replayed, r.Version, before, after, err)
}

// operate tells both what an operator wants, and compares.
func (w *twins) operate(c transitions.Command, o transitions.Operation) {
	w.t.Helper()
	got, gotErr := w.sim.Operate(c, o)
	want, wantErr := w.e.Admin().Operate(w.t.Context(), c, o)
	w.compare(string(o.Action), got, gotErr, want, wantErr)
}

// skip lets both come to rest, moves both clocks, lets both come to rest again, and
// compares all that there is. An attempt that was begun ends at the time at which it
// began: a run has it so, and an engine only if its clock waits for it.
func (w *twins) skip(d time.Duration) {
	w.t.Helper()
	w.rest()
	w.sim.Skip(d)
	w.now.Add(int64(d))
	w.rest()
	for _, key := range w.keys {
		id := idOf(key)
		ours, err := w.sim.Instance("", id)
		require.NoError(w.t, err)
		theirs, err := w.e.Read().Instance(w.t.Context(), "", id)
		require.NoError(w.t, err)
		history, err := w.e.Read().History(w.t.Context(), "", id, 0, 0)
		require.NoError(w.t, err)
		if a, b := life(&ours, w.sim.History("", id)), life(&theirs, history); a != b {
			w.t.Errorf("%s after %s: in the run\n%son the engine\n%s", key, elapsed(w.sim), a, b)
		}
	}
	if a, b := w.flying(w.sim.InFlight()), w.flying(w.engineFlying()); a != b {
		w.t.Errorf("after %s are in flight in the run\n%son the engine\n%s", elapsed(w.sim), a, b)
	}
}

// rest lets the engine's attempts go on, and waits until it has nothing to work on.
func (w *twins) rest() {
	w.t.Helper()
	w.gate.Unlock()
	defer w.gate.Lock()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for busy := -1; busy != 0; <-tick.C {
		err := w.pool.QueryRow(ctx, `SELECT count(*) FROM pawl.command WHERE run_at <= $1 AND paused IS NULL OR locked_until IS NOT NULL`,
			w.sim.Now()).Scan(&busy)
		require.NoErrorf(w.t, err, "the engine still has %d commands to work on: %v", busy, err)
	}
}

func life(i *transitions.Instance, history []transitions.Entry) string {
	var b strings.Builder
	fmt.Fprintln(&b, i.State, i.Version, i.Open, i.Paused, i.Links.InFlight, len(i.Links.Effects), i.Actors, string(i.Data))
	for _, e := range history {
		fmt.Fprintln(&b, e.Version, e.Transition, e.From, e.To, e.Actor, e.Reason, string(e.Payload), e.Scope, e.Key)
	}
	return b.String()
}

// flying are the commands in flight of the known instances, without what a
// random backoff makes of them.
func (w *twins) flying(list []transitions.Record) string {
	var lines []string
	for _, r := range list {
		known := slices.ContainsFunc(w.keys, func(key string) bool { return r.Instance == idOf(key) })
		switch {
		case !known:
		case r.Phase == transitions.Scheduled:
			lines = append(lines, fmt.Sprintln(r.Scope, r.Key, r.Status, r.Transition, r.RunAt.UTC().Truncate(time.Minute), r.CancelledBy))
		default:
			lines = append(lines, fmt.Sprintln(r.Scope, r.Key, r.Status, r.Phase, r.Transition, r.Attempt, r.Failures, r.Failure, r.Stuck,
				r.CancelledBy))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func (w *twins) engineFlying() (list []transitions.Record) {
	w.t.Helper()
	found, err := w.pool.Query(w.t.Context(), `SELECT tenant, scope, key FROM pawl.command WHERE phase IS NOT NULL`)
	require.NoError(w.t, err)
	refs, err := pgx.CollectRows(found, pgx.RowToStructByPos[transitions.Ref])
	require.NoError(w.t, err)
	for _, ref := range refs {
		r, err := w.e.Read().Command(w.t.Context(), ref)
		require.NoError(w.t, err)
		list = append(list, r)
	}
	return list
}

func idOf(key string) uuid.UUID { return transitions.InstanceID("default", "move", key) }

// A run says what an engine does: one script, told to both. No step makes two
// commands of one instance due, which an engine may do in any order.
func TestARunDoesWhatAnEngineDoes(t *testing.T) {
	t.Parallel()
	w := newTwins(t)
	for _, name := range []string{"A", "B", "C", "D", "E", "F"} {
		w.keys = append(w.keys, name)
		book := onMove("", "book", "book "+name, name)
		w.submit(book)
		w.submit(book)
	}
	w.submit(onMove("", "book", "again", "A"))
	until := onMove("B", "write", "until", "x")
	until.Payload = fmt.Appendf(nil, `{"until":%q}`, pawltest.Begin.Add(90*time.Minute).Format(time.RFC3339))
	w.submit(until)
	w.submit(onMove("A", "write", "refuse", "refuse"))
	w.submit(onMove("A", "write", "panic", "panic"))
	w.submit(onMove("A", "fly", "fly", ""))
	later := onMove("C", "write", "later", "later")
	later.NotBefore, later.Reason = pawltest.Begin.Add(10*time.Minute), "not before"
	w.submit(later)
	w.submit(later)
	later.Reason = "another"
	w.submit(later)
	w.submit(onMove("D", "write", "child", "with a friend"))

	// Activities: at once, at the second attempt, never, in vain, by an operator.
	why := onMove("A", "call", "call", "")
	why.Reason = "asked\nfor"
	w.submit(why)
	w.submit(onMove("B", "call", "call", "busy once"))
	w.submit(onMove("C", "call", "call", "never"))
	w.submit(onMove("E", "call", "call", "busy"))
	w.submit(onMove("F", "carry", "carry", "late"))
	w.skip(2 * time.Second)
	w.skip(2 * time.Second)
	w.submit(onMove("A", "call", "call", "")) // without the reason it is another
	w.submit(why)
	w.submit(onMove("C", "call", "call", "never"))
	w.submit(onMove("C", "call", "call", "another"))
	w.submit(onMove("F", "carry", "carry", "late"))
	for range 2 {
		w.operate(transitions.Command{Key: "op", Actor: "eve"}, transitions.Operation{Action: transitions.Resolve, Reason: "seen",
			Target: transitions.CommandRef{Scope: "move:" + idOf("F").String(), Key: "carry"}, Result: []byte(`{"text":"by hand"}`)})
	}
	w.skip(time.Second)

	// A saga, a cancellation, a pause.
	w.submit(onMove("A", "finish", "finish", "never"))
	w.submit(onMove("E", "call", "call 2", "busy"))
	w.skip(0) // so that it waits to be tried again: by chance that may be soon
	w.submit(onMove("E", "leave", "leave", ""))
	w.operate(transitions.Command{Key: "pause", Instance: idOf("C")}, transitions.Operation{Action: transitions.Pause})
	w.submit(onMove("C", "write", "write", "in vain"))
	w.skip(20 * time.Minute)
	w.operate(transitions.Command{Key: "resume", Instance: idOf("C")}, transitions.Operation{Action: transitions.Resume})
	w.skip(time.Minute)
	w.skip(time.Hour)
	w.skip(time.Hour)
}

// onMove is a command of ann on the move with that business key.
func onMove(name, transition, key, text string) transitions.Command {
	return transitions.Command{Workflow: "move", BusinessKey: name, Transition: transition, Key: key, Actor: "ann",
		Payload: fmt.Appendf(nil, `{"text":%q}`, text)}
}

func (w *twins) do(name, transition, key, text string) {
	w.t.Helper()
	w.submit(onMove(name, transition, key, text))
}

// book starts a move for each business key.
func (w *twins) book(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.keys = append(w.keys, name)
		w.do("", "book", "book "+name, name)
	}
}
