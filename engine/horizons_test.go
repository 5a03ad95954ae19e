package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/testlog"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// letter is a workflow whose answers are replayed for an hour, unless a test says
// otherwise, and whose keys are refused for two more.
type letter struct {
	Text string `json:"text,omitempty"`
}

type words struct {
	Text  string `json:"text"`
	Hours int    `json:"hours"` // for which the answer is kept at least
}

var hourly = workflow.Horizons{Replay: time.Hour, Tombstone: 2 * time.Hour}

// letters have an activity that ends when post does.
func letters(version int, h workflow.Horizons, post func(context.Context, words) error) *workflow.Definition[letter] {
	write := func(c *workflow.Call, l *letter, w words) error {
		if w.Text == "refuse" {
			return workflow.Refuse("not that")
		}
		l.Text = w.Text
		c.KeepAnswer(time.Duration(w.Hours) * time.Hour)
		return nil
	}
	if post == nil {
		post = func(context.Context, words) error { return nil }
	}
	return workflow.Define("letter", version,
		workflow.Start("write", "written", write),
		workflow.Do("post", workflow.From("written", "returned"), "posting", "written",
			func(ctx context.Context, _ *workflow.Attempt, _ letter, w words) (words, error) {
				return w, post(ctx, w)
			}, write).OrElse("returned", func(_ *workflow.Call, l *letter, f workflow.Failure) error {
			l.Text = string(f.Kind)
			return nil
		}),
		workflow.On("remind", workflow.From("written"), "reminded", nothing[letter, workflow.None]),
		workflow.On("file", workflow.From("written", "reminded"), "filed", nothing[letter, workflow.None]),
	).Final("filed").After("reminder", workflow.From("written"), 72*time.Hour, "remind").Keep(h)
}

// written is the command that writes a letter; "s" is its scope.
func written(key, text string) transitions.Command {
	return transitions.Command{Workflow: "letter", Transition: "write", Key: key,
		Payload: fmt.Appendf(nil, `{"text":%q,"hours":0}`, text), Options: transitions.Options{Scope: "s"}}
}

func posted(id uuid.UUID, key string) transitions.Command {
	return transitions.Command{Workflow: "letter", Transition: "post", Instance: id, Key: key,
		Payload: []byte(`{"text":"x","hours":0}`), Options: transitions.Options{Scope: "s"}}
}

// wantExpired checks that a key is refused in every way in which it can be asked
// for.
func wantExpired(t *testing.T, pool *pgxpool.Pool, e *engine.Engine, c transitions.Command) {
	t.Helper()
	before := query[int](t, pool, "SELECT count(*) FROM pawl.audit WHERE transition <> 'remind'") // which a timer does
	wantCode(t, errOf(e.Submit(t.Context(), c)), workflow.KeyExpired)
	wantCode(t, e.SubmitMany(t.Context(), []transitions.Command{c, c})[1].Err, workflow.KeyExpired)
	tx := begin(t, pool)
	wantCode(t, errOf(e.SubmitTx(t.Context(), tx, c)), workflow.KeyExpired)
	rollback(t, tx)
	wantCode(t, errOf(e.Read().Command(t.Context(), transitions.Ref{Scope: c.Scope, Key: c.Key})), workflow.KeyExpired)
	wantCode(t, errOf(e.Await(t.Context(), transitions.Ref{Scope: c.Scope, Key: c.Key})), workflow.KeyExpired)
	w := e.Read().Watch(transitions.Ref{Scope: c.Scope, Key: c.Key})
	defer w.Close()
	wantCode(t, errOf(w.Next(t.Context())), workflow.KeyExpired)
	wantCode(t, errOf(e.Cancel(t.Context(), transitions.Ref{Scope: c.Scope, Key: c.Key}, "ann")), workflow.KeyExpired)
	wantCode(t, errOf(e.Admin().Operate(t.Context(), transitions.Command{Key: "op", Options: transitions.Options{Scope: "ops"}},
		transitions.Operation{Action: transitions.Retry, Target: transitions.CommandRef{Scope: c.Scope, Key: c.Key}})), workflow.KeyExpired)
	c.Actor = "somebody else"
	wantCode(t, errOf(e.Submit(t.Context(), c)), workflow.KeyReused) // also past its horizon it is not another's
	after := query[int](t, pool, "SELECT count(*) FROM pawl.audit WHERE transition <> 'remind'")
	assert.Equalf(t, before, after, "%d transitions more", after-before)
}

func TestAKeyIsReplayedThenRefusedThenForgotten(t *testing.T) {
	t.Parallel()
	pool, clock := database(t), newStill()
	here, there := newEngine(t, pool, with(letters(1, hourly, nil)), clock.set), newEngine(t, pool, with(letters(1, hourly, nil)), clock.set)
	for _, c := range []transitions.Command{written("done", "x"), written("refused", "refuse")} {
		first, err := here.Submit(t.Context(), c)
		require.NoError(t, err)
		clock.skip(time.Hour - time.Microsecond)
		for _, e := range []*engine.Engine{here, there} {
			again, err := e.Submit(t.Context(), c)
			assert.Truef(t, err == nil && again.Replayed && again.Status == first.Status && string(again.Body) == string(first.Body),
				"%s, just before its horizon: %+v, %v", c.Key, again, err)
		}
		clock.skip(time.Microsecond)
		wantExpired(t, pool, here, c) // as soon as it is past, whether or not retention has come by
		wantExpired(t, pool, there, c)
		retain(t, pool, clock.Now())
		status := query[string](t, pool, "SELECT status || ' ' || coalesce(body, 'without a body') FROM pawl.command WHERE key = $1", c.Key)
		require.Equal(t, "expired without a body", status, "it")
		wantExpired(t, pool, here, c)
		clock.skip(2*time.Hour - time.Microsecond)
		retain(t, pool, clock.Now())
		wantExpired(t, pool, there, c)
		clock.skip(time.Microsecond)
		retain(t, pool, clock.Now())
		wantCode(t, errOf(here.Read().Command(t.Context(), transitions.Ref{Scope: "s", Key: c.Key})), workflow.CommandNotFound)
		anew, err := there.Submit(t.Context(), c)
		assert.Truef(t, err == nil && !anew.Replayed && anew.Status == first.Status, "%s, forgotten: %+v, %v", c.Key, anew, err)
	}
}

func TestCommandRetention_Bounds(t *testing.T) {
	t.Parallel()
	pool, clock := database(t), newStill()
	e := newEngine(t, pool, with(letters(1, workflow.Horizons{Replay: time.Hour, MaxReplay: 5 * time.Hour, MaxTombstone: 1000 * time.Hour},
		nil)), clock.set)
	hook := newEngine(t, pool, clock.set) // whose workflow says nothing
	type times struct{ replayed, refused string }
	stored := func(key string) (got times) {
		return times{query[string](t, pool, "SELECT (expires_at - finished_at)::text FROM pawl.command WHERE key = $1", key),
			query[string](t, pool, "SELECT coalesce((forget_at - expires_at)::text, '') FROM pawl.command WHERE key = $1", key)}
	}
	for key, c := range map[string]struct {
		replay, tombstone time.Duration
		text              string
		want              times
	}{
		"nothing":          {0, 0, "x", times{"01:00:00", ""}},
		"both":             {5 * time.Hour, 1000 * time.Hour, "x", times{"05:00:00", "41 days 16:00:00"}},
		"less":             {time.Second, 0, "x", times{"00:00:01", ""}},
		"a tombstone":      {0, time.Minute, "x", times{"01:00:00", "00:01:00"}},
		"a refusal's":      {time.Minute, time.Minute, "refuse", times{"00:01:00", "00:01:00"}},
		"the action's own": {time.Minute, time.Minute, "keep", times{"03:00:00", "00:01:00"}},
	} {
		cmd := written(key, c.text)
		if c.text == "keep" {
			cmd.Payload = []byte(`{"text":"x","hours":3}`)
		}
		cmd.Replay, cmd.Tombstone = c.replay, c.tombstone
		require.NoError(t, errOf(e.Submit(t.Context(), cmd)))
		assert.Equal(t, c.want, stored(key), key)
		// The key stands for the same request; of the times the first one's count.
		cmd.Replay, cmd.Tombstone = time.Hour, 0
		if again, err := e.Submit(t.Context(), cmd); err != nil || !again.Replayed || stored(key) != c.want {
			t.Errorf("%s, again with other times: %+v, %v, %+v", key, again, err, stored(key))
		}
	}
	// In a group, and beside a hook's own SQL.
	mixed := []transitions.Command{written("plain", "x"), written("wide", "x"), written("plain 2", "x")}
	mixed[1].Tombstone = time.Minute
	for _, r := range e.SubmitMany(t.Context(), mixed) {
		require.NoError(t, r.Err)
	}
	for key, want := range map[string]times{"plain": {"01:00:00", ""}, "wide": {"01:00:00", "00:01:00"}, "plain 2": {"01:00:00", ""}} {
		assert.Equal(t, want, stored(key), key)
	}
	submit(t, hook, applied("L-1", 100))
	book := on("book", "L-1", "book", 1, "")
	book.Tombstone = time.Minute
	submit(t, hook, book)
	got, want := stored("book"), (times{"1 day", "00:01:00"})
	assert.Truef(t, got == want, "book: %+v, want %+v", got, want)

	for says, change := range map[string]func(*transitions.Command){
		"5h0m0s":    func(c *transitions.Command) { c.Replay = 5*time.Hour + 1 },
		"1000h0m0s": func(c *transitions.Command) { c.Tombstone = workflow.Forever },
		"negative":  func(c *transitions.Command) { c.Tombstone = -1 },
	} {
		cmd := written("too much", "x")
		change(&cmd)
		_, err := e.Submit(t.Context(), cmd)
		_, dry := e.DryRun(t.Context(), cmd)
		for _, err := range []error{err, dry} {
			assert.Truef(t, workflow.CodeOf(err) == workflow.InvalidRequest && strings.Contains(err.Error(), says),
				"got %v, want one that says %s", err, says)
		}
	}
}

// The retention period starts at the completion, however long the activity takes.
func TestInFlight_RetentionFromCompletion(t *testing.T) {
	t.Parallel()
	pool, clock := database(t), newStill()
	goOn := make(chan struct{})
	e := newEngine(t, pool, with(letters(1, hourly, func(ctx context.Context, _ words) error {
		select {
		case <-goOn:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})), clock.set)
	id := submit(t, e, written("w", "x")).Instance
	c := posted(id, "k")
	c.Replay, c.Tombstone = 2*time.Hour, 3*time.Hour
	submit(t, e, c)
	clock.skip(50 * time.Hour)
	retain(t, pool, clock.Now())
	again := submit(t, e, c)
	require.Truef(t, again.InFlight(), "got %+v", again)
	close(goOn)
	want, err := e.Await(t.Context(), transitions.Ref{Scope: "s", Key: "k"})
	require.Truef(t, err == nil && want.Status == 200, "%+v, %v", want, err)
	got := query[string](t, pool, "SELECT (expires_at - finished_at) || ' ' || (forget_at - expires_at) FROM pawl.command WHERE key = 'k'")
	assert.Equal(t, "02:00:00 03:00:00", got, "it is kept for")
	clock.skip(2*time.Hour - time.Microsecond)
	assert.Equal(t, want, submit(t, e, c))
	clock.skip(time.Microsecond)
	wantExpired(t, pool, e, c)
}

func horizonRow(t testing.TB, pool *pgxpool.Pool) string {
	t.Helper()
	return query[string](t, pool, `SELECT replay || ' ' || coalesce(tombstone::text,
		'forever') || ' ' || history || ' ' || coalesce(history_kept::text, 'forever')
		FROM pawl.horizon WHERE workflow = 'letter'`)
}

func TestRecordedRetentionGrows(t *testing.T) {
	t.Parallel()
	pool := database(t)
	const day = 24 * time.Hour
	for _, node := range []struct {
		version int
		says    workflow.Horizons
		want    string
		grew    bool
		less    bool
	}{
		{1, workflow.Horizons{}, "24:00:00 720:00:00 false forever", false, false},
		{1, workflow.Horizons{Replay: 2 * day, Tombstone: 40 * day}, "48:00:00 960:00:00 false forever", true, false},
		{1, workflow.Horizons{Replay: day, Tombstone: workflow.Forever, History: 90 * day}, "48:00:00 forever true 2160:00:00", true, true},
		{2, workflow.Horizons{Replay: day, Tombstone: time.Minute}, "48:00:00 forever true 2160:00:00", false, true},
		{1, workflow.Horizons{Replay: 3 * day, History: workflow.Forever}, "72:00:00 forever true forever", true, true}, // an old node restarts
		{2, workflow.Horizons{Replay: 3 * day, Tombstone: workflow.Forever, History: workflow.Forever}, "72:00:00 forever true forever", false,
			false},
	} {
		var log testlog.Log
		before := query[string](t, pool, "SELECT coalesce((SELECT xmin::text FROM pawl.horizon WHERE workflow = 'letter'), 'none')")
		newEngine(t, pool, with(letters(node.version, node.says, nil)), func(c *engine.Config) { c.Log = slog.New(&log) })
		assert.Equalf(t, node.want, horizonRow(t, pool), "%+v", node)
		if grew, less := log.Count("the horizons of a workflow grew") == 1,
			log.Count("this node says less of the horizons") == 1; grew != node.grew || less != node.less {
			t.Errorf("%+v: the log says %q", node, log.List())
		}
		after := query[string](t, pool, "SELECT xmin::text FROM pawl.horizon WHERE workflow = 'letter'")
		assert.Falsef(t, before != "none" && (before != after) != node.grew, "%+v: it was %s and is %s", node, before, after)
	}

	// A person makes them shorter, and no node that says the same changes that.
	exec(t, pool, "UPDATE pawl.horizon SET replay = '1 day', tombstone = '1 minute', history = false, history_kept = NULL WHERE workflow = "+
		"'letter'")
	newEngine(t, pool, with(letters(2, workflow.Horizons{Replay: day, Tombstone: time.Minute}, nil)))
	got := horizonRow(t, pool)
	assert.Falsef(t, got != "24:00:00 00:01:00 false forever" && got != "1 day 00:01:00 false forever", "got %s", got)
}

func TestATransientEngineWritesNoHorizons(t *testing.T) {
	t.Parallel()
	pool := database(t)
	newEngine(t, pool, with(letters(1, hourly, nil)))
	newEngine(t, pool, with(letters(1, workflow.Horizons{Tombstone: workflow.Forever}, nil)), func(c *engine.Config) { c.Transient = true })
	assert.Equal(t, "01:00:00 02:00:00 false forever", horizonRow(t, pool))
}

// An engine runs retention and reports its progress.
func TestAnEngineDoesRetention(t *testing.T) {
	t.Parallel()
	pool, off := started(t, func(c *engine.Config) { c.Retention.Off = true })
	if s, err := off.Admin().Retention(t.Context()); err != nil || s.Node != "" {
		t.Errorf("%+v, %v", s, err)
	}
	e := newEngine(t, pool)
	eventually(t, "it works", func() bool { return e.Admin().RetentionStats().Batches > 0 })
	s, err := off.Admin().Retention(t.Context())
	assert.Truef(t, err == nil && s.Node != "" && s.Since != nil && s.Until != nil && len(s.Partitions) >= 5 &&
		strings.HasPrefix(s.Partitions[0].Name, "command_history_"), "%+v, %v", s, err)
	assert.Equal(t, int64(0), off.Admin().RetentionStats().Batches, "the other one, too")
}

func TestEventsAreKeptForADayAtLeast(t *testing.T) {
	t.Parallel()
	pool := database(t)
	for kept, ok := range map[time.Duration]bool{-time.Hour: false, time.Nanosecond: false, 24*time.Hour - 1: false, 24 * time.Hour: true,
		0: true} {
		_, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{loans(1)}, Retention: engine.RetentionConfig{Outbox: kept}})
		assert.Truef(t, ok == (err == nil) && (err == nil || strings.Contains(err.Error(), "Config.Retention.Outbox is less than 24h0m0s")),
			"%s: %v", kept, err)
	}
}
