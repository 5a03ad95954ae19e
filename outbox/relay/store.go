package relay

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/transitions"
)

type storeReply struct {
	batch    *storeBatch
	sent     time.Time
	err      error // the outcome is unknown
	lost     bool  // the token is not the newest: nothing was stored
	revision int64
	moved    []tenantLag // cursors that an operator has moved, and their positions
	rows     map[*instanceQueue][]queuedRow
	onHold   map[*instanceQueue]bool // queues whose other rows wait for an operator
	deferred []deferredInstance
	full     map[string]bool // tenants with too many deferred instances to name all
}

const (
	queryBudget = 10 * time.Second // of a batch or a poll
	finalBudget = 5 * time.Second  // of a batch when the node must stop
	rowsEach    = 32               // rows per instance and read
)

// settings are transaction settings of a batch. They force index scans even for statements that
// were planned while the tables were empty, and bound the wait for a sink locked by an operator.
// They are local to the transaction because poolers share sessions.
const settings = `SELECT set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
	set_config('lock_timeout', '2s', true)`

// storeBatch stores a batch in one transaction, so that the cursor never passes an event whose row
// is not stored.
func (h *holder) storeBatch(b *storeBatch, budget time.Duration) *storeReply {
	ctx, cancel := context.WithTimeout(context.Background(), budget)
	defer cancel()
	r := &storeReply{batch: b, sent: time.Now(), rows: map[*instanceQueue][]queuedRow{}, onHold: map[*instanceQueue]bool{}}
	c, name, token, in := &h.relay.config, h.sink.Name, h.lease.token, h.relay.in
	var tx pgx.Batch
	tx.Queue("BEGIN ISOLATION LEVEL READ COMMITTED") // independent of the role's default
	tx.Queue(settings)
	tx.Queue(in(renewSQL), name, token, c.Lease.Microseconds(), b.delivered, b.failed, b.parked, b.failures, orNull(b.failure),
		b.release, orNull(b.pause)).Query(func(rows pgx.Rows) error {
		renewed, err := pgx.ForEachRow(rows, []any{&r.revision}, func() error { return nil })
		r.lost = renewed.RowsAffected() == 0
		return err
	})
	for tenant, n := range byTenant(b.newRows) {
		tx.Queue(in(insertDeadSQL), tenant, name, token, b.movesKnown(n.window), n.positions, n.types, n.ordinals, n.workflows, n.instances,
			n.statuses, n.kinds, n.failures, n.attempts)
	}
	for tenant, n := range byTenant(b.changes) {
		tx.Queue(in(updateDeadSQL), tenant, name, token, n.positions, n.types, n.statuses, n.kinds, n.failures, n.attempts, n.asOf)
	}
	for _, c := range b.cursors {
		tx.Queue(in(cursorSQL), c.window.tenant, name, token, b.movesKnown(c.window), c.position, c.failure)
	}
	tx.Queue(in(movedSQL), name, b.knownMoves).Query(func(rows pgx.Rows) error {
		var m tenantLag
		_, err := pgx.ForEachRow(rows, []any{&m.tenant, &m.cursor, &m.revision}, func() error {
			r.moved = append(r.moved, m)
			return nil
		})
		return err
	})
	hold := h.sink.Exhausted == HoldInstance
	if b.reload {
		tx.Queue(in(deferredSQL), name, hold, h.flow.policy.maxDeferred, h.sink.Tenants).Query(r.readDeferred)
	}
	fetch := map[string]map[uuid.UUID]*instanceQueue{}
	for _, q := range b.fetch {
		if fetch[q.tenant] == nil {
			fetch[q.tenant] = map[uuid.UUID]*instanceQueue{}
		}
		fetch[q.tenant][q.instance] = q
	}
	for tenant, queues := range fetch {
		ids := make([]string, 0, len(queues))
		for id := range queues {
			ids = append(ids, id.String())
		}
		tx.Queue(in(rowsSQL), tenant, name, ids, hold, rowsEach).Query(func(rows pgx.Rows) error {
			return r.readRows(rows, c.Events.Source(), tenant, queues)
		})
	}
	tx.Queue("COMMIT")
	r.err = c.Pool.SendBatch(ctx, &tx).Close()
	return r
}

func (r *storeReply) readDeferred(rows pgx.Rows) (err error) {
	var a deferredInstance
	var full bool
	r.full = map[string]bool{}
	_, err = pgx.ForEachRow(rows, []any{&a.tenant, &a.instance, &a.onHold, &full}, func() error {
		if full {
			r.full[a.tenant] = true
		} else {
			r.deferred = append(r.deferred, a)
		}
		return nil
	})
	return err
}

func (r *storeReply) readRows(rows pgx.Rows, source, tenant string, queues map[uuid.UUID]*instanceQueue) error {
	for rows.Next() {
		var w queuedRow
		var there, onHold bool
		var at *time.Time
		e := transitions.Event{Source: source, Tenant: tenant}
		if err := outbox.Scan(rows, &e, &e.Instance, &e.Position, &e.Type, &e.Ordinal, &w.attempts, &w.kind, &w.failure,
			&there, &at, &onHold); err != nil {
			return err
		}
		q := queues[e.Instance]
		r.onHold[q] = onHold
		if e.Position == 0 {
			continue
		}
		w.removed = !there
		if there {
			e.At = at.UTC()
			w.event.CloudEvent = e.AppendCloudEvent(nil)
		}
		w.event.Event = e
		r.rows[q] = append(r.rows[q], w)
	}
	return rows.Err()
}

type rowColumns struct {
	window           *logWindow // of new rows; the same for all of a tenant
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

func (c *rowColumns) add(n *rowChange) {
	if n.item.pending != nil {
		c.window = n.item.pending.window
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

// byTenant groups row changes. The last change of an event wins.
func byTenant(changes []rowChange) map[string]*rowColumns {
	type address struct {
		tenant, kind string
		position     int64
	}
	seen := make(map[address]bool, len(changes))
	tenants := map[string]*rowColumns{}
	for _, c := range slices.Backward(changes) {
		e := &c.item.event.Event
		at := address{e.Tenant, e.Type, e.Position}
		if seen[at] {
			continue
		}
		seen[at] = true
		if tenants[e.Tenant] == nil {
			tenants[e.Tenant] = &rowColumns{}
		}
		tenants[e.Tenant].add(&c)
	}
	return tenants
}

func orNull[V comparable](v V) *V {
	var zero V
	if v == zero {
		return nil
	}
	return &v
}
