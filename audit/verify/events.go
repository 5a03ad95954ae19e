package verify

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
)

// eventColumns pairs the events of the outbox with the audit rows of their positions, by instance. The third column from the end lists
// differences between an event and its row or its instance; rows have no copy of events emitted by actions. The attributes of the
// instance come with the events of its newest row. A row without events comes with its week if that may have a partition.
var (
	eventColumns = `
SELECT coalesce(a.instance, o.instance), coalesce(a.version, o.version), coalesce(a.position, o.position), a.position IS NULL,
	CASE WHEN o.position IS NULL THEN date_trunc('week', a.at, 'UTC') END, coalesce(o.ordinal, 0), coalesce(o.type, ''),
	CASE WHEN o.ordinal > 0 THEN o.payload::text END, a.payload IS NULL, a.events_digest, a.rest_digest IS NOT NULL,
	CASE WHEN o.instance <> a.instance THEN 'instance' WHEN o.version <> a.version THEN 'version' WHEN o.workflow <> a.workflow THEN 'workflow'
		WHEN o.transition <> a.transition THEN 'transition' WHEN o.state <> a.to_state THEN 'state' WHEN o.at <> a.at THEN 'time'
		WHEN o.ordinal = 0 AND o.type <> a.workflow || '.' || a.transition THEN 'type'
		WHEN o.ordinal = 0 AND o.payload IS NOT NULL THEN 'payload' -- readers take the row's data
		WHEN o.business_key IS DISTINCT FROM a.business_key THEN 'business key' ELSE '' END,
	coalesce(nullif(o.attributes, '{}')::text, ''), CASE WHEN a.newest THEN coalesce(nullif(a.attributes, '{}')::text, '') END`

	// PostgreSQL executes a full join as a hash or merge join. For a tenant without statistics the planner expects one row, and another
	// join would read all instances for each audit row. eventsWhere drops instances without a row.
	auditColumns = `(SELECT x.*, i.business_key, i.attributes, i.version = x.version AS newest FROM `
	ofTenant     = auditColumns + `(` + audit.Rows("$1", "") + `) x FULL JOIN (` + store.Instances("$1") + `) i ON i.id = x.instance) a`
	ofInstance   = auditColumns + `(` + audit.Rows("$1", "$2") + `) x FULL JOIN (` + store.Instances("$1") +
		` AND id = $2) i ON i.id = x.instance) a`

	eventsWhere = `
WHERE o.position IS NOT NULL OR ` + outbox.WeekOf("a.at") + ` IS NOT NULL
ORDER BY 1, 3, 6`

	eventsSQL = eventColumns + `
FROM ` + ofTenant + ` FULL JOIN (` + outbox.Events("$1") + `) o ON o.position = a.position` + eventsWhere

	eventsOfOneSQL = eventColumns + `
FROM ` + ofInstance + ` LEFT JOIN (` + outbox.Events("$1") + `) o ON o.position = a.position` + eventsWhere

	weeksSQL = `SELECT w FROM unnest($1::timestamptz[]) AS w WHERE ` + outbox.Attached(outbox.WeekOf("w")) + ` ORDER BY w`
)

// eventRow is an event with its audit row, or only one of them.
type eventRow struct {
	instance          uuid.UUID
	version, position int64
	alone             bool       // without an audit row
	gone              *time.Time // week of the audit row, if there is no event
	ordinal           int
	kind              string
	payload           []byte // of an event emitted by an action
	redacted          bool   // the audit row was redacted
	digest            []byte
	changes           bool // the transition changed attributes, actors or effects
	wrong             string
	attributes        string  // as JSON, or ""
	has               *string // current ones of the instance, if this is its newest version
}

// events verifies the rows of eventColumns.
type events struct {
	out   *inspect.Verification
	known map[uuid.UUID]bool // instances with a reported break
	gone  map[time.Time]*gone

	newest eventRow
	before eventRow // last event of the previous position, of any instance
	ok     bool     // so far, of the current position
	of     []transitions.Event
}

// gone counts the missing events of a week.
type gone struct {
	inspect.Break
	others int64
}

// verifyEvents appends defects of the events of an instance, or of the tenant for nil: one for each
// instance without a known defect. It does not expect weeks that retention has dropped.
func (t *Verifier) verifyEvents(ctx context.Context, out *inspect.Verification, tenant string, one *uuid.UUID) error {
	sql, args := eventsSQL, []any{pgx.QueryExecModeCacheDescribe, tenant}
	if one != nil {
		sql, args = eventsOfOneSQL, append(args, *one)
	}
	rows, _ := t.q.Query(ctx, t.in(sql), args...) // ForEachRow returns its error
	v := events{out: out, known: map[uuid.UUID]bool{}, gone: map[time.Time]*gone{}}
	for _, b := range out.Broken {
		v.known[b.Instance] = true
	}
	var r eventRow
	_, err := pgx.ForEachRow(rows, []any{&r.instance, &r.version, &r.position, &r.alone, &r.gone, &r.ordinal, &r.kind, &r.payload,
		&r.redacted, &r.digest, &r.changes, &r.wrong, &r.attributes, &r.has}, func() error {
		v.check(r)
		r = eventRow{}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	v.finish()
	return t.verifyWeeks(ctx, &v)
}

func (v *events) check(r eventRow) {
	if r.gone != nil {
		v.miss(r)
		return
	}
	if r.position != v.newest.position || r.instance != v.newest.instance {
		v.finish()
		v.ok, v.of, v.before = true, nil, v.newest
	}
	if v.ok {
		switch next := len(v.of); {
		case r.alone:
			v.report(r, fmt.Sprintf("the outbox has an event %q at position %d, where no transition is", r.kind, r.position))
		case r.wrong != "":
			v.report(r, fmt.Sprintf("the %s of its event %q in the outbox is not its own", r.wrong, r.kind))
		case r.ordinal != next:
			v.report(r, fmt.Sprintf("its event number %d is missing from the outbox, which has number %d", next, r.ordinal))
		case r.has != nil && *r.has != r.attributes:
			v.report(r, fmt.Sprintf("the attributes of its event %q in the outbox are not its own", r.kind))
		case !v.keeps(r):
			v.report(r, fmt.Sprintf("the attributes of its event %q in the outbox are not those of the event before it,"+
				" and it has not changed them", r.kind))
		case r.ordinal > 0 && r.payload == nil && r.redacted:
			v.ok = false // erased like its row; its digest cannot be verified
		}
	}
	v.newest = r
	v.of = append(v.of, transitions.Event{Type: r.kind, Payload: r.payload})
}

// keeps reports whether an event has the expected attributes: those of the transition's first event, or, if the transition does not
// change attributes, those of the previous version. Before version 1 an instance has none.
func (v *events) keeps(r eventRow) bool {
	switch {
	case r.ordinal > 0:
		return r.attributes == v.newest.attributes
	case r.changes:
		return true
	case r.version == 1:
		return r.attributes == ""
	}
	next := v.before.instance == r.instance && v.before.version == r.version-1
	return !next || r.attributes == v.before.attributes
}

// finish ends a position.
func (v *events) finish() {
	if v.ok && !bytes.Equal(decide.EmittedDigest(v.of), v.newest.digest) {
		v.report(v.newest, "the outbox does not have the events that it emitted: one was changed, added or removed")
	}
}

func (v *events) report(r eventRow, reason string) {
	v.ok = false
	if !v.known[r.instance] {
		v.known[r.instance] = true
		v.out.Broken = append(v.out.Broken, inspect.Break{Instance: r.instance, Version: r.version, Reason: reason})
	}
}

func (v *events) miss(r eventRow) {
	if v.known[r.instance] {
		return
	}
	week := r.gone.UTC()
	if g := v.gone[week]; g != nil {
		g.others++
		return
	}
	v.gone[week] = &gone{Break: inspect.Break{Instance: r.instance, Version: r.version}}
}

// verifyWeeks reports missing events of weeks that still exist.
func (t *Verifier) verifyWeeks(ctx context.Context, v *events) error {
	if len(v.gone) == 0 {
		return nil
	}
	rows, _ := t.q.Query(ctx, t.in(weeksSQL), pgx.QueryExecModeCacheDescribe, slices.Collect(maps.Keys(v.gone))) // see ForEachRow
	var week time.Time
	_, err := pgx.ForEachRow(rows, []any{&week}, func() error {
		g := v.gone[week.UTC()]
		g.Reason = "its events are missing from the outbox"
		if g.others > 0 {
			g.Reason += fmt.Sprintf(", and those of %d other transitions of the week from %s", g.others, week.UTC().Format(time.DateOnly))
		}
		v.out.Broken = append(v.out.Broken, g.Break)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	return nil
}
