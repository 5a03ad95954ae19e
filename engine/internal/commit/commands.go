package commit

import (
	"time"

	"github.com/pawlhq/pawl/internal/decide"
	"github.com/pawlhq/pawl/internal/rows"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The columns of a command, without the tenant. The row of a command that is
// done at once, and says nothing of its tombstone, has only the first kind;
// flightColumns has both.
var (
	commandColumns = []rows.Column{
		rows.Of("scope", rows.Text), rows.Of("key", rows.Text), rows.Of("fingerprint", rows.Bytea),
		rows.Of("status", rows.Text), rows.Of("workflow", rows.Text), rows.Of("transition", rows.Text),
		rows.Of("instance", rows.UUID), rows.Of("version", rows.Int8), rows.Of("actor", rows.Text),
		rows.Of("code", rows.Int2), rows.Of("body", rows.Text), rows.Of("created_at", rows.Timestamptz),
		rows.Of("finished_at", rows.Timestamptz), rows.Of("expires_at", rows.Timestamptz),
	}
	flightColumns = append(commandColumns[:len(commandColumns):len(commandColumns)],
		rows.Of("phase", rows.Text), rows.Of("attempt", rows.Int4), rows.Of("failures", rows.Int4), rows.Of("revision", rows.Int4),
		rows.Of("claimed_by", rows.Text), rows.Of("run_at", rows.Timestamptz), rows.Of("request", rows.JSON),
		rows.Of("updated_at", rows.Timestamptz), rows.Of("forget_at", rows.Timestamptz))
	settledColumns = []rows.Column{
		rows.Of("scope", rows.Text), rows.Of("key", rows.Text), rows.Of("seen", rows.Int4), rows.Of("was", rows.Text),
		rows.Of("status", rows.Text), rows.Of("version", rows.Int8), rows.Of("code", rows.Int2), rows.Of("body", rows.Text),
		rows.Of("finished_at", rows.Timestamptz), rows.Of("expires_at", rows.Timestamptz),
		rows.Of("phase", rows.Text), rows.Of("attempt", rows.Int4), rows.Of("claimed_by", rows.Text),
		rows.Of("run_at", rows.Timestamptz), rows.Of("request", rows.JSON), rows.Of("updated_at", rows.Timestamptz),
		rows.Of("forget_at", rows.Timestamptz),
	}
	cancelledColumns = []rows.Column{
		rows.Of("scope", rows.Text), rows.Of("key", rows.Text), rows.Of("actor", rows.Text), rows.Of("at", rows.Timestamptz),
	}
	disarmedColumns = []rows.Column{rows.Of("scope", rows.Text), rows.Of("spare", rows.Text)}
)

// commandRow is the row of a new command.
type commandRow struct {
	decide.Planned
	status  transitions.Status
	version int64
	code    int
	body    []byte
	flying  bool // it has a Flight, and no answer yet
	leased  bool // this node's lease begins with the row
	keep    decide.Keep
	expires time.Time // until when the answer is replayed; not of one that is flying
}

// wide reports whether the row takes flightColumns.
func (c *commandRow) wide() bool { return c.flying || c.keep.Tombstone != 0 }

func (c *commandRow) add(s *rows.Set, now time.Time) {
	s.Text(c.Scope)
	s.Text(c.Key)
	s.Bytes(c.Fingerprint[:])
	s.Text(string(c.status))
	s.Text(c.Workflow)
	s.Text(c.Transition)
	s.UUID(c.Instance)
	s.Int8OrNull(c.version)
	s.Text(c.Actor)
	if c.flying {
		s.Null()
		s.Null()
		s.Time(now)
		s.Null()
		s.Null()
		return
	}
	s.Int2(c.code)
	s.Bytes(c.body)
	s.Time(now)
	s.Time(now)
	s.Time(c.expires)
}

// addFlight adds the row with its second kind of columns.
func (c *commandRow) addFlight(s *rows.Set, now time.Time, node string) {
	c.add(s, now)
	if !c.flying {
		for range len(flightColumns) - len(commandColumns) - 1 {
			s.Null()
		}
		addForget(s, c.keep, c.expires)
		return
	}
	s.Text(string(c.Flight.Phase))
	attempt, by, runAt := 0, "", c.Flight.RunAt
	if c.leased {
		attempt, by, runAt = 1, node, time.Time{}
	}
	s.Int4(attempt)
	s.Int4(0)
	s.Int4(0)
	s.TextOrNull(by)
	s.TimeOrNull(runAt)
	s.Bytes(c.Flight.Request)
	s.Time(now)
	s.Null()
}

// addForget adds when a tombstone is forgotten, where somebody has said it: so
// long after the answer has expired.
func addForget(s *rows.Set, k decide.Keep, expires time.Time) {
	switch k.Tombstone {
	case 0:
		s.Null()
	case workflow.Forever:
		s.Infinity()
	default:
		s.Time(expires.Add(k.Tombstone))
	}
}

// addSettled adds what becomes of a row that is in flight. expires is until when
// the answer is replayed, if there is one.
func addSettled(s *rows.Set, t *decide.Target, leased bool, now, expires time.Time, node string) {
	s.Text(t.Scope)
	s.Text(t.Key)
	s.Int4(t.Attempt)
	s.Text(string(t.Was))
	s.Text(string(t.Status))
	s.Int8OrNull(t.Version)
	if t.Flight == nil {
		s.Int2(t.Code)
		s.Bytes(t.Body)
		s.Time(now)
		s.Time(expires)
		s.Null()
		s.Int4(t.Attempt)
		s.Null()
		s.Null()
		s.Null()
		s.Time(now)
		addForget(s, t.Keep, expires)
		return
	}
	for range 4 {
		s.Null()
	}
	s.Text(string(t.Flight.Phase))
	attempt, by, runAt := t.Attempt, "", t.Flight.RunAt
	if leased {
		attempt, by, runAt = t.Attempt+1, node, time.Time{}
	}
	s.Int4(attempt)
	s.TextOrNull(by)
	s.TimeOrNull(runAt)
	s.Bytes(t.Flight.Request)
	s.Time(now)
	s.Null()
}

func insertCommands(b *rows.Builder, array bool, from string) {
	names := rows.Names(commandColumns)
	b.Add("INSERT INTO pawl.command (tenant, ", names, ") SELECT ").Param(rows.Text, false).
		Add(", ", names, " FROM ").Source(commandColumns, array)
	if from != "" {
		b.Add(", ", from)
	}
}

// acceptMany inserts commands of which some have more columns than most. A lease lasts by the
// database's clock, whatever the engine's says. Parameters: tenant, length of a
// lease in microseconds, columns.
func acceptMany(b *rows.Builder) {
	names := rows.Names(flightColumns)
	b.Add("INSERT INTO pawl.command (tenant, claimed_at, locked_until, ", names, ") SELECT ").Param(rows.Text, false).
		Add(", CASE WHEN claimed_by IS NOT NULL THEN clock_timestamp() END, CASE WHEN claimed_by IS NOT NULL THEN clock_timestamp() + ").
		Param(rows.Int8, false).Add(" * interval '1 microsecond' END, ", names, " FROM ").Source(flightColumns, true)
}

// found joins the source u to the commands that it names, each with a probe of
// the key, and locks them, so that they stay where they are found: against the
// claims and heartbeats of workers, which are all short.
const found = ` CROSS JOIN LATERAL (SELECT x.ctid AS row FROM pawl.command x WHERE x.tenant = $1 AND x.scope = u.scope AND x.key = u.key
	LIMIT 1 FOR NO KEY UPDATE) AS found`

// settleMany writes what became of commands in flight, in the order of their
// keys. If one is not as it was seen the transaction fails and runs again.
// Parameters: tenant, length of a lease in microseconds, columns, number of rows.
func settleMany(b *rows.Builder) {
	b.Add("WITH settled AS (UPDATE pawl.command AS c SET status = u.status, version = CASE WHEN u.phase IS NULL THEN u.version ELSE coalesce(u.version, c.version) END, code = u.code, body = u.body, ",
		"finished_at = u.finished_at, expires_at = u.expires_at, phase = u.phase, attempt = u.attempt, ",
		"failures = CASE WHEN u.phase IS NULL THEN c.failures ELSE 0 END, revision = c.revision + 1, stuck = NULL, unsure = NULL, waits_since = NULL, ",
		"claimed_by = coalesce(u.claimed_by, c.claimed_by), claimed_at = CASE WHEN u.claimed_by IS NULL THEN c.claimed_at ELSE clock_timestamp() END, ",
		"locked_until = CASE WHEN u.claimed_by IS NOT NULL THEN clock_timestamp() + u.lease * interval '1 microsecond' END, ",
		"run_at = u.run_at, request = u.request, updated_at = u.updated_at, forget_at = u.forget_at FROM (SELECT found.row, t.lease, u.* FROM (SELECT ").
		Param(rows.Text, false).Add(" AS tenant, ").Param(rows.Int8, false).Add(" AS lease) AS t, ").Source(settledColumns, true).
		Add(found, ") AS u WHERE c.ctid = u.row AND c.tenant IS NOT DISTINCT FROM $1",
			" AND c.attempt = u.seen AND c.status = u.was RETURNING 1) SELECT pawl.expect(count(*), ").Param(rows.Int8, false).Add(") FROM settled")
}

// cancelMany asks commands in flight to stop: who works on them will see it, and
// those that wait are due at once, to end. Parameters: tenant, columns, number
// of rows.
func cancelMany(b *rows.Builder) {
	b.Add("WITH cancelled AS (UPDATE pawl.command AS c SET cancelled_by = u.actor, revision = c.revision + 1, stuck = NULL, ",
		"run_at = CASE WHEN c.status = 'processing' THEN NULL ELSE u.at END, updated_at = u.at FROM (SELECT found.row, u.* FROM (SELECT ").
		Param(rows.Text, false).Add(" AS tenant) AS t, ").Source(cancelledColumns, true).Add(found,
		") AS u WHERE c.ctid = u.row AND c.tenant IS NOT DISTINCT FROM $1 AND c.phase IS NOT NULL RETURNING 1) SELECT pawl.expect(count(*), ").
		Param(rows.Int8, false).Add(") FROM cancelled")
}

// disarm deletes the commands of some scopes that are not decided yet, but for one
// key each.
// Parameters: tenant, columns.
func disarm(b *rows.Builder) {
	b.Add("DELETE FROM pawl.command AS c USING (SELECT found.row FROM (SELECT ").Param(rows.Text, false).Add(" AS tenant) AS t, ").
		Source(disarmedColumns, true).Add(` CROSS JOIN LATERAL (SELECT x.ctid AS row FROM pawl.command x
	WHERE x.tenant = $1 AND x.scope = u.scope AND x.key <> u.spare AND x.phase = 'scheduled' FOR UPDATE) AS found) AS u
	WHERE c.ctid = u.row AND c.tenant IS NOT DISTINCT FROM $1`)
}

// recordSelect are the columns that readRecord reads, of a command named c and
// the audit row of its transition, named a.
const recordSelect = `c.scope, c.key, c.fingerprint, c.status, c.workflow, c.transition, c.instance, c.version, c.code, c.body,
	c.created_at, c.finished_at, c.expires_at, a.position, c.actor, c.phase, c.attempt, c.failures, c.revision, c.claimed_by, c.claimed_at,
	coalesce(c.locked_until, c.held_until), c.run_at, c.request, c.progress, c.failure, c.stuck, c.cancelled_by, c.updated_at`

// readRecord reads recordSelect; nil when the row is not there.
func readRecord(r *rows.Row) *transitions.Record {
	if r.IsNull() {
		return nil
	}
	rec := &transitions.Record{Scope: r.Text(), Key: r.Text(), Fingerprint: r.Hash(), Status: transitions.Status(r.Text()),
		Workflow: r.Text(), Transition: r.Text(), Instance: r.UUID(), Version: r.Int8(), Code: r.Int2(), Body: r.Bytes(),
		CreatedAt: r.Time(), FinishedAt: r.Time(), ExpiresAt: r.Time(), Position: r.Int8(), Actor: r.Text()}
	rec.Phase = transitions.Phase(r.Text())
	rec.Attempt, rec.Failures, rec.Revision = r.Int4(), r.Int4(), r.Int4()
	rec.ClaimedBy, rec.ClaimedAt, rec.LockedUntil, rec.RunAt = r.Text(), r.Time(), r.Time(), r.Time()
	rec.Request, rec.Progress, rec.Failure, rec.Stuck, rec.CancelledBy = r.Bytes(), r.Bytes(), r.Text(), r.Text(), r.Text()
	rec.UpdatedAt = r.Time()
	if rec.UpdatedAt.IsZero() {
		rec.UpdatedAt = rec.FinishedAt
	}
	return rec
}
