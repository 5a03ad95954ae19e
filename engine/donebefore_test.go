package engine_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// note is a workflow whose second version takes less than the first, and does not
// have all that it had.
type note struct{}

type anyText struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

type shortText struct {
	Name string `json:"name"`
	Text string `json:"text" validate:"max=3"`
}

func longNotes(h workflow.Horizons) workflow.Source {
	return workflow.Define("note", 1,
		workflow.Start("jot", "there", nothing[note, anyText]),
		workflow.Start("file", "there", nothing[note, anyText]).BusinessKey(func(t anyText) string { return t.Name }),
		workflow.On("add", workflow.From("there"), workflow.Stay, func(_ *workflow.Call, _ *note, t anyText) error {
			if t.Text == "refuse" {
				return workflow.Refuse("not that")
			}
			return nil
		}),
		workflow.On("mark", workflow.From("there"), workflow.Stay, nothing[note, workflow.None]),
		workflow.On("burn", workflow.From("there"), "gone", nothing[note, workflow.None]),
	).Final("gone").Keep(h)
}

func shortNotes(h workflow.Horizons) workflow.Source {
	return workflow.Define("note", 2,
		workflow.Start("jot", "there", nothing[note, shortText]),
		workflow.Start("file", "there", nothing[note, shortText]).BusinessKey(func(t shortText) string { return t.Name }),
		workflow.On("add", workflow.From("there"), workflow.Stay, nothing[note, shortText]),
		workflow.On("burn", workflow.From("there"), "gone", nothing[note, workflow.None]),
	).Final("gone").Keep(h)
}

// askedAgain is what a command gets in every way in which it can be submitted.
func askedAgain(t *testing.T, pool *pgxpool.Pool, e *engine.Engine, c transitions.Command) (replies []transitions.Reply) {
	t.Helper()
	r, err := e.Submit(t.Context(), c)
	replies = append(replies, transitions.Reply{Receipt: r, Err: err})
	replies = append(replies, e.SubmitMany(t.Context(), []transitions.Command{c, c})...)
	tx := begin(t, pool)
	defer rollback(t, tx)
	r, err = e.SubmitTx(t.Context(), tx, c)
	_, broken := tx.Exec(t.Context(), "SELECT 1")
	assert.NoError(t, broken, "the caller's transaction is aborted")
	return append(replies, transitions.Reply{Receipt: r, Err: err})
}

// A command that names another instance than the first command with its key is a different request, although the fingerprint of a creation
// does not include the business key.
func TestCreation_OtherInstance(t *testing.T) {
	t.Parallel()
	pool := database(t)
	long := workflow.Horizons{Replay: time.Hour, Tombstone: time.Hour}
	before, after := newEngine(t, pool, with(longNotes(long))), newEngine(t, pool, with(shortNotes(long)))
	for _, c := range []transitions.Command{
		{Workflow: "note", Transition: "jot", Key: "jotted", Payload: []byte(`{"name":"n-1","text":"too long"}`)},
		{Workflow: "note", Transition: "file", Key: "filed", Payload: []byte(`{"name":"n-1","text":"too long"}`)},
	} {
		submit(t, before, c)
		named := c
		named.BusinessKey = "n-1"
		for i, r := range askedAgain(t, pool, after, named) {
			assert.Truef(t, (c.Transition != "file" || r.Err == nil && r.Receipt.Replayed) && (c.Transition != "jot" || r.Err != nil),
				"%s by its number, way %d: %+v, %v", c.Transition, i, r.Receipt, r.Err)
		}
		named.BusinessKey = "n-2"
		for i, r := range askedAgain(t, pool, after, named) {
			code := workflow.CodeOf(r.Err)
			assert.Truef(t, (code == workflow.InvalidPayload || code == workflow.InvalidRequest),
				"%s by another number, way %d: %+v, %v", c.Transition, i, r.Receipt, r.Err)
		}
	}
}

// Stricter definitions and limits apply to new commands only: stored answers stay available.
func TestReplay_AfterStricterVersion(t *testing.T) {
	t.Parallel()
	pool, clock := database(t), newStill()
	wide := workflow.Horizons{Replay: time.Hour, MaxReplay: 10 * time.Hour, Tombstone: 50 * time.Hour, MaxTombstone: 100 * time.Hour}
	narrow := workflow.Horizons{Replay: time.Hour, MaxReplay: time.Hour, Tombstone: time.Hour, MaxTombstone: time.Hour}
	before := newEngine(t, pool, with(longNotes(wide)), clock.set)
	after := newEngine(t, pool, with(shortNotes(narrow)), clock.set)
	other := newEngine(t, pool, clock.set) // which does not know the workflow

	on := func(key, transition, payload string) transitions.Command {
		return transitions.Command{Workflow: "note", Transition: transition, BusinessKey: "n-1", Key: key, Payload: []byte(payload)}
	}
	filed := transitions.Command{Workflow: "note", Transition: "file", Key: "filed", Payload: []byte(`{"name":"n-1","text":"too long"}`)}
	made := submit(t, before, filed)
	byName, refused, gone, scoped, later, kept := on("by name", "add", `{"name":"","text":"too long"}`),
		on("refused", "add", `{"name":"","text":"refuse"}`),
		on("gone", "mark", ""), on("scoped", "add", `{"name":"","text":"too long"}`), on("later", "add", `{"name":"","text":"too long"}`),
		on("kept", "burn", "")
	byID := transitions.Command{Transition: "add", Instance: made.Instance, Key: "by id", Payload: []byte(`{"text":"too long", "name":"x"}`),
		Actor: "ann", Options: transitions.Options{IfVersion: 2}}
	jotted := transitions.Command{Workflow: "note", Transition: "jot", Key: "jotted", Payload: filed.Payload}
	scoped.Scope, later.NotBefore, kept.Replay, kept.Tombstone = "s", clock.Now().Add(5*time.Hour), 10*time.Hour, 100*time.Hour
	done := []transitions.Command{filed, jotted, byName, byID, refused, gone, scoped, later, kept}
	want := map[string]transitions.Receipt{filed.Key: made}
	for _, c := range done[1:] {
		r, err := before.Submit(t.Context(), c)
		require.NoError(t, err, c.Key)
		want[c.Key] = r
	}
	require.Equal(t, 200, want["by id"].Status, "by id")
	written := rowCounts(t, pool)
	for _, c := range done {
		for i, r := range append(askedAgain(t, pool, after, c), askedAgain(t, pool, other, c)...) {
			w := want[c.Key]
			assert.Truef(t, r.Err == nil && r.Receipt.Replayed && r.Receipt.Status == w.Status && string(r.Receipt.Body) == string(w.Body) &&
				r.Receipt.Instance == w.Instance && r.Receipt.Version == w.Version && r.Receipt.Position == w.Position,
				"%s, way %d: got %+v, %v, want %+v", c.Key, i, r.Receipt, r.Err, w)
		}
	}

	// New requests are checked against the current workflow, even under a known key, and a dry run looks up no key. This node does not know
	// the rules of the instance's version for a payload.
	now := map[string]workflow.Code{filed.Key: workflow.InvalidPayload, byName.Key: workflow.NotOnThisNode, scoped.Key: workflow.NotOnThisNode,
		kept.Key: workflow.InvalidRequest}
	for _, c := range []transitions.Command{filed, byName, scoped, kept} {
		fresh, another, want := c, c, now[c.Key]
		fresh.Key = "fresh"
		another.Actor = "somebody else"
		for _, c := range []transitions.Command{fresh, another} {
			for _, r := range askedAgain(t, pool, after, c) {
				assert.Equalf(t, want, workflow.CodeOf(r.Err), "%s of %q: got %+v, %v", c.Key, c.Actor, r.Receipt, r.Err)
			}
		}
		assert.Errorf(t, errOf(after.DryRun(t.Context(), c)), "%s: a dry run is not held to it", c.Key)
	}
	wantMore(t, pool, written, nil)

	// Past its horizon it is refused as what it was.
	clock.skip(2 * time.Hour)
	for _, r := range askedAgain(t, pool, after, filed) {
		wantCode(t, r.Err, workflow.KeyExpired)
	}
	retain(t, pool, clock.Now())
	for _, r := range askedAgain(t, pool, after, filed) {
		wantCode(t, r.Err, workflow.KeyExpired)
	}
}
