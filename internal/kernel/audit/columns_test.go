package audit_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/decide"
)

// tampering is a change of one column of a table, what is said of it, and of which
// version.
type tampering struct {
	set, want string
	at        int64
}

const (
	ofLife = "the row was changed, or the instance's definition, business key or parent was"
	kept   = `the attributes of its event "order.move" in the outbox are not those of the event before it, and it has not changed them`
	ofRest = "the instance's attributes, actors or effects (in links) are not what its rows say"
)

// each tries one change of every column of a table, on the rows that where names,
// and on all columns that there are.
func (b *book) each(t *testing.T, table, where string, columns map[string][]tampering) {
	t.Helper()
	found, err := b.pool.Query(t.Context(), "SELECT column_name::text FROM information_schema.columns WHERE table_schema = 'pawl' AND "+
		"table_name = $1", table)
	require.NoError(t, err)
	names, err := pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(t, err)
	slices.Sort(names)
	known := slices.Sorted(maps.Keys(columns))
	assert.Truef(t, slices.Equal(names, known), "%s has the columns %v; a change is tried of %v", table, names, known)
	for name, tries := range columns {
		for _, try := range tries {
			sql := fmt.Sprintf("UPDATE pawl.%s SET %s WHERE %s", table, try.set, where)
			var want []inspect.Break
			if try.want != "" {
				want = []inspect.Break{broken(second, try.at, try.want)}
			}
			got := b.verifyAfter(t, second, sql)
			assert.Truef(t, slices.Equal(got.Broken, want), "%s: got %+v, want %+v", try.set, got.Broken, want)
			if name == "tenant" || name == "id" || name == "position" {
				continue // the rest of the tenant has more to say
			}
			all := b.verifyAfter(t, uuid.Nil, sql)
			assert.Truef(t, slices.Equal(all.Broken, want), "%s, of the tenant: got %+v, want %+v", try.set, all.Broken, want)
		}
	}
}

func TestAChangeOfAnyColumnOfAnInstanceIsNamed(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	says := func(what string) string { return "the instance's " + what + " not what its rows say" }
	one := func(set, want string, at int64) []tampering { return []tampering{{set, want, at}} }
	b.each(t, "instance", fmt.Sprintf("tenant = 'acme' AND id = '%s'", second), map[string][]tampering{
		"tenant":       one("tenant = 'other'", "the instance of these rows is missing", 4),
		"id":           one("id = 'ffffffff-0000-8000-8000-000000000001'", "the instance of these rows is missing", 4),
		"workflow":     one("workflow = 'orders'", says("workflow is"), 4),
		"definition":   one("definition = 2", ofLife, 1),
		"business_key": one("business_key = 'x'", "the instance's id is not that of its workflow and its business key", 1),
		"state":        one("state = 's3'", says("state is"), 4),
		"version":      one("version = 5", "the instance is at version 5, but its last row is of version 4", 5),
		"data":         one(`data = '{"total":41}'`, says("data is"), 4),
		"attributes": {{`attributes = '{"region":"south"}'`, ofRest, 4}, {"attributes = NULL", ofRest, 4},
			{`attributes = '{"region":"north","x":"y"}'`, ofRest, 4}},
		"actors": {{"actors = NULL", ofRest, 4}, {`actors = '{"move":["bob"]}'`, ofRest, 4},
			{"actors = '[1]'", says("column actors is"), 4}},
		"open":       one("open = false", says("column open is"), 4),
		"chain":      one("chain = sha256(chain)", "the instance does not hold the hash of its last row", 4),
		"created_at": one("created_at = created_at - interval '1 microsecond'", says("column created_at is"), 4),
		"updated_at": one("updated_at = now()", says("column updated_at is"), 4),
		"paused":     one("paused = true", says("column paused is"), 4),
		"bucket":     nil, // the row's place in an index, of which nobody reads anything
		"links": {{"links = NULL", ofRest, 4}, {`links = '{"effects":[]}'`, ofRest, 4}, {`links = '{"x":1}'`, says("column links is"), 4},
			{`links = '{"effects":[{"transition":"book","scope":"s","key":"k","payload":{}}],"in_flight":{"transition":"a","scope":"s","key":"k"}}'`,
				says("command in flight (in links) is"), 4},
			{`links = '{"effects":[{"transition":"book","scope":"s","key":"k","payload":{}}],"parent":{"workflow":"w",` +
				`"instance":"ffffffff-0000-8000-8000-000000000001"}}'`,
				ofLife, 1}},
	})
}

func TestAChangeOfAnyColumnOfAnEventIsNamed(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	own := func(what string) string {
		return fmt.Sprintf("the %s of its event \"order.move\" in the outbox is not its own", what)
	}
	one := func(set, want string) []tampering { return []tampering{{set, want, 3}} }
	gone := "its events are missing from the outbox"
	b.exec(t, "ALTER TABLE pawl.outbox DROP CONSTRAINT outbox_check") // which keeps that payload NULL
	b.each(t, "outbox", "tenant = 'acme' AND position = 8", map[string][]tampering{
		"tenant":       one("tenant = 'other'", gone),
		"position":     one("position = 13", gone),
		"type":         one("type = 'order.moved'", `the type of its event "order.moved" in the outbox is not its own`),
		"ordinal":      one("ordinal = 1", `its event number 0 is missing from the outbox, which has number 1`),
		"workflow":     one("workflow = 'orders'", own("workflow")),
		"instance":     one("instance = 'ffffffff-0000-8000-8000-000000000001'", own("instance")),
		"version":      one("version = 4", own("version")),
		"transition":   one("transition = 'moved'", own("transition")),
		"state":        one("state = 's4'", own("state")),
		"at":           one("at = at + interval '1 microsecond'", own("time")),
		"business_key": one("business_key = 'x'", own("business key")),
		"trace":        one("trace = repeat('x', 55)", ""), // who looked on, not what happened
		// The former value is known because the next transition, the newest, changed nothing.
		"attributes": {{`attributes = '{"region":"south"}'`, kept, 4}, {"attributes = NULL", kept, 4}},
		"payload":    one(`payload = '{"total":30}'`, own("payload")),
	})
}

// The chain covers the attributes of the instance, so those of its newest event.
// Those of an event before it are covered as long as nothing of attributes, actors
// and effects was changed in between. Where something was, it is known only that the
// events from one such change to the next have the same.
func TestAttributesOfEvents(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	const south = `UPDATE pawl.outbox SET attributes = '{"region":"south"}' WHERE tenant = 'acme' AND position `
	for sql, want := range map[string][]inspect.Break{
		south + "= 11":                {broken(second, 4, `the attributes of its event "order.move" in the outbox are not its own`)},
		south + "= 8":                 {broken(second, 4, kept)},
		south + "= 2":                 {broken(second, 2, kept)},
		south + "= 5":                 {broken(second, 2, kept)},
		south + "= 5 AND ordinal = 1": {broken(second, 2, strings.Replace(kept, "order.move", "noted", 1))},
		south + "IN (2, 5)":           nil, // the third has changed something
		south + "IN (2, 5, 8)":        {broken(second, 4, kept)},
		south + "IN (2, 5, 8, 11)":    {broken(second, 4, `the attributes of its event "order.move" in the outbox are not its own`)},
		strings.ReplaceAll(south, "'{\"region\":\"south\"}'", `'{"region": "north" }'`) + "> 0": nil,
	} {
		for _, id := range []uuid.UUID{second, uuid.Nil} {
			got := b.verifyAfter(t, id, sql)
			assert.Truef(t, slices.Equal(got.Broken, want), "%s: got %+v, want %+v", sql, got.Broken, want)
		}
	}
}

func TestAnEmittedEventThatIsChangedIsNoticed(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	const emitted = "the outbox does not have the events that it emitted: one was changed, added or removed"
	for _, tt := range []struct{ sql, want string }{
		{`UPDATE pawl.outbox SET payload = '{"v": 3}' WHERE position = 5 AND ordinal = 1`, emitted},
		{`UPDATE pawl.outbox SET payload = '{"v":2}' WHERE position = 5 AND ordinal = 1`, emitted}, // a space
		{"UPDATE pawl.outbox SET type = 'notes' WHERE position = 5 AND ordinal = 1", emitted},
		{"UPDATE pawl.outbox SET ordinal = 2 WHERE position = 5 AND ordinal = 1",
			"its event number 1 is missing from the outbox, which has number 2"},
		{"DELETE FROM pawl.outbox WHERE position = 5 AND ordinal = 1", emitted},
		{"DELETE FROM pawl.outbox WHERE position = 5 AND ordinal = 0", "its event number 0 is missing from the outbox, which has number 1"},
		{`INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at, business_key, attributes,
			payload)
			SELECT tenant, position, 'more', 2, workflow, instance, version, transition, state, at, business_key, attributes, '{}' FROM pawl.outbox
			WHERE position = 5 AND ordinal = 0`, emitted},
		{"DELETE FROM pawl.outbox WHERE position = 5", "its events are missing from the outbox"},
	} {
		for _, id := range []uuid.UUID{second, uuid.Nil} {
			if got := b.verifyAfter(t, id, tt.sql); !slices.Equal(got.Broken, []inspect.Break{broken(second, 2, tt.want)}) {
				t.Errorf("%s: got %+v, want %q", tt.sql, got.Broken, tt.want)
			}
		}
	}
	added := `INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at, business_key,
		attributes, payload)
		SELECT tenant, 13, type, 0, workflow, instance, 5, transition, state, at, business_key, attributes, payload FROM pawl.outbox
			WHERE position = 11`
	want := broken(second, 5, `the outbox has an event "order.move" at position 13, where no transition is`)
	got := b.verifyAfter(t, uuid.Nil, added)
	assert.Truef(t, slices.Equal(got.Broken, []inspect.Break{want}), "an event of no transition: got %+v", got.Broken)
	all := b.verifyAfter(t, uuid.Nil, "DELETE FROM pawl.outbox")
	want = broken(first, 1, "its events are missing from the outbox, and those of 11 other transitions of the week from 2025-12-29")
	assert.Truef(t, slices.Equal(all.Broken, []inspect.Break{want}), "all are removed, but not their week: got %+v", all.Broken)
}

// Rows that retention has dropped are not missing, even while the partition is being detached.
func TestAWeekThatRetentionDropsIsNotMissed(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	for _, sql := range []string{"ALTER TABLE pawl.outbox DETACH PARTITION pawl.outbox_2026w01 CONCURRENTLY",
		"SELECT pawl.drop_partition('outbox_2026w01')"} {
		b.exec(t, sql)
		for _, id := range []uuid.UUID{second, uuid.Nil} {
			got, err := b.verify.Verify(t.Context(), tenant, id, nil)
			assert.Truef(t, err == nil && len(got.Broken) == 0, "after %s: %+v, %v", sql, got, err)
		}
	}
}

// A change of the instance is found at the next transition, even if that has overwritten it.
func TestAChangeThatTheNextTransitionCoversIsFound(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	// As the engine would, which decides on what it finds: the third had no actors.
	tampered, after, e := instance(third, 3), instance(third, 4), entry(third, 4, 12)
	tampered.Actors, after.Actors = nil, nil
	was, is := decide.StandingOf(tampered), decide.StandingOf(after)
	e.Before, e.After, e.Rest = was.Digest(), is.Digest(), nil
	e.Hash = audit.Link(b.entries[third][2].Hash, &e)
	laundered := fmt.Sprintf(`UPDATE pawl.audit SET hash = '\x%x'%s; UPDATE pawl.instance SET actors = %%s, chain = '\x%x' WHERE id = '%s'`,
		e.Hash, where(third, 4), e.Hash, third)
	for _, actors := range []string{"NULL", "actors"} {
		got := b.verifyAfter(t, uuid.Nil, fmt.Sprintf(laundered, actors))
		assert.Truef(t, slices.Equal(got.Broken,
			[]inspect.Break{broken(third, 4, changed)}), "actors are %s afterwards: got %+v", actors, got.Broken)
	}
}
