package relay

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/outbox"
	"github.com/pawlhq/pawl/transitions"
)

// reply is what the database says to a letter.
type reply struct {
	letter   *letter
	sent     time.Time
	err      error // nothing is known
	lost     bool  // the token is not the newest: nothing was stored
	revision int64
	moved    []behind // cursors that a person has moved, and to where
	rows     map[*lane][]row
	barred   map[*lane]bool // lanes whose other rows wait for a person
	aside    []held
	full     map[string]bool // tenants with too many instances aside to tell
}

const (
	budget   = 10 * time.Second // of one message to the database
	lastWord = 5 * time.Second  // of one when there is no more time
	rowsEach = 32               // of an instance that are read at once
)

// settings keep the statements of a letter to their index probes, also when a
// connection planned them while the tables were empty, and the letter from
// waiting for long for a sink that a person has locked. They are the
// transaction's own: a session may be somebody else's a moment later.
const settings = `SELECT set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
	set_config('lock_timeout', '2s', true)`

// exchange sends a letter. It is one transaction, so that the cursor never
// passes what is not stored as put aside.
func (t *tenure) exchange(l *letter, budget time.Duration) *reply {
	ctx, cancel := context.WithTimeout(context.Background(), budget)
	defer cancel()
	r := &reply{letter: l, sent: time.Now(), lost: true, rows: map[*lane][]row{}, barred: map[*lane]bool{}}
	name, sql := t.sink.Name, &t.relay.sql
	var b pgx.Batch
	b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED") // whatever the role's default is
	b.Queue(settings)
	b.Queue(sql.keep, name, t.token, t.relay.config.Lease.Microseconds(), l.delivered, l.failed, l.parked, l.failures, orNull(l.failure),
		l.release, orNull(l.pause)).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&r.revision}, func() error {
			r.lost = false
			return nil
		})
		return err
	})
	for tenant, n := range byTenant(l.parks) {
		b.Queue(sql.park, tenant, name, t.token, l.known(n.of), n.positions, n.types, n.ordinals, n.workflows, n.instances, n.statuses, n.kinds, n.failures, n.attempts)
	}
	for tenant, n := range byTenant(l.notes) {
		b.Queue(sql.change, tenant, name, t.token, n.positions, n.types, n.statuses, n.kinds, n.failures, n.attempts, n.asOf)
	}
	for _, c := range l.cursors {
		b.Queue(sql.cursor, c.of.tenant, name, t.token, l.known(c.of), c.position, c.failure)
	}
	b.Queue(sql.moved, name, l.moved).Query(func(rows pgx.Rows) (err error) {
		r.moved, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (m behind, err error) {
			err = row.Scan(&m.tenant, &m.cursor, &m.revision)
			return m, err
		})
		return err
	})
	hold := t.sink.Exhausted == HoldInstance
	if l.reload {
		b.Queue(sql.aside, name, hold, t.flow.policy.lanes, t.sink.Tenants).Query(r.readAside)
	}
	for tenant, lanes := range lanesByTenant(l.hungry) {
		ids := make([]string, 0, len(lanes))
		for id := range lanes {
			ids = append(ids, id.String())
		}
		b.Queue(sql.rows, tenant, name, ids, hold, rowsEach).Query(func(rows pgx.Rows) error { return r.readRows(rows, t.relay.config.Source, tenant, lanes) })
	}
	b.Queue("COMMIT")
	r.err = t.relay.config.Pool.SendBatch(ctx, &b).Close()
	return r
}

// readAside reads which instances are aside.
func (r *reply) readAside(rows pgx.Rows) (err error) {
	var h held
	var full bool
	r.full = map[string]bool{}
	_, err = pgx.ForEachRow(rows, []any{&h.tenant, &h.instance, &h.barred, &full}, func() error {
		if full {
			r.full[h.tenant] = true
		} else {
			r.aside = append(r.aside, h)
		}
		return nil
	})
	return err
}

// readRows reads rows of outbox_dead with their events.
func (r *reply) readRows(rows pgx.Rows, source, tenant string, lanes map[uuid.UUID]*lane) error {
	for rows.Next() {
		var w row
		var there, barred bool
		var at *time.Time
		e := transitions.Event{Source: source, Tenant: tenant}
		if err := outbox.Scan(rows, &e, &e.Instance, &e.Position, &e.Type, &e.Ordinal, &w.attempts, &w.kind, &w.failure, &there, &at, &barred); err != nil {
			return err
		}
		l := lanes[e.Instance]
		r.barred[l] = barred
		if e.Position == 0 {
			continue
		}
		w.removed = !there
		if there {
			e.At = at.UTC()
			w.event.CloudEvent = e.AppendCloudEvent(nil)
		}
		w.event.Event = e
		r.rows[l] = append(r.rows[l], w)
	}
	return rows.Err()
}

func lanesByTenant(list []*lane) map[string]map[uuid.UUID]*lane {
	tenants := map[string]map[uuid.UUID]*lane{}
	for _, l := range list {
		if tenants[l.tenant] == nil {
			tenants[l.tenant] = map[uuid.UUID]*lane{}
		}
		tenants[l.tenant][l.instance] = l
	}
	return tenants
}

// columns are notes as the statements take them.
type columns struct {
	of               *stretch // of new rows; all of a tenant are of one
	positions        []int64
	types, workflows []string
	ordinals         []int32
	instances        []string
	statuses         []string
	kinds            []string
	failures         []string
	attempts         []int32
	asOf             []int64
}

func (c *columns) add(n *note) {
	if n.item.mark != nil {
		c.of = n.item.mark.of
	}
	e := &n.item.event.Event
	c.positions = append(c.positions, e.Position)
	c.types = append(c.types, e.Type)
	c.ordinals = append(c.ordinals, int32(e.Ordinal))
	c.workflows = append(c.workflows, e.Workflow)
	c.instances = append(c.instances, e.Instance.String())
	c.statuses = append(c.statuses, string(n.status))
	c.kinds = append(c.kinds, string(n.kind))
	c.failures = append(c.failures, n.failure)
	c.attempts = append(c.attempts, int32(n.attempts))
	c.asOf = append(c.asOf, n.asOf)
}

// byTenant groups notes. Of several about one event only the last counts.
func byTenant(notes []note) map[string]*columns {
	type address struct {
		tenant, kind string
		position     int64
	}
	of := func(n *note) address {
		e := &n.item.event.Event
		return address{e.Tenant, e.Type, e.Position}
	}
	last := make(map[address]int, len(notes))
	for i := range notes {
		last[of(&notes[i])] = i
	}
	tenants := map[string]*columns{}
	for i := range notes {
		n := &notes[i]
		if last[of(n)] != i {
			continue
		}
		tenant := n.item.event.Tenant
		if tenants[tenant] == nil {
			tenants[tenant] = &columns{}
		}
		tenants[tenant].add(n)
	}
	return tenants
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
