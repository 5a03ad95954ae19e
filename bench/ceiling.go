package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/rows"
	"github.com/pawlhq/pawl/workflow"
)

// ceilingGroup is how many commands the ceiling commits at once.
const ceilingGroup = 100

// The ceiling is what the database takes when nobody asks whether it is right:
// the rows that the engine writes, a hundred commands in each transaction, set
// by set, in one message and one answer. It reads nothing, decides nothing and
// hashes nothing. Its callers know the versions because nobody else writes, and
// number their transitions in the program; the log's head is written all the
// same, since the engine writes it.
//
// With reading it also does what cannot be left out of a correct program: it
// first locks the instances and looks the keys up, in a message of their own.
func ceilingScenario(name string, connections int, reading bool) *scenario {
	return &scenario{name: name, section: theCeiling, floor: floorMany, ceiling: !reading,
		run: closedLoop(func(ctx context.Context, e *env) ([]caller, func(), error) {
			conns, end, err := e.connections(ctx, connections)
			if err != nil {
				return nil, nil, err
			}
			position := new(atomic.Int64)
			position.Store(int64(len(e.orders)))
			callers := make([]caller, connections)
			for i, conn := range conns {
				// As in the engine: whatever the statistics say, only indexes are probed.
				if _, err := conn.Exec(ctx, `SET plan_cache_mode = force_generic_plan; SET jit = off;
					SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off`); err != nil {
					end()
					return nil, nil, err
				}
				callers[i] = newCeiling(rows.NewConn(conn.PgConn()), i+1, e.flip, share(e.orders, i, connections), position, reading).call
			}
			return callers, end, nil
		})}
}

// ceiling is one connection's caller.
type ceiling struct {
	conn       *rows.Conn
	statements *ceilingStatements
	number     int
	specimen   *specimen
	orders     []order
	versions   []int64
	position   *atomic.Int64
	reading    bool
	n          int

	ids, keys, instances, commands, audit, events *rows.Set
}

func newCeiling(conn *rows.Conn, number int, s *specimen, orders []order, position *atomic.Int64, reading bool) *ceiling {
	c := &ceiling{conn: conn, statements: newCeilingStatements(), number: number, specimen: s, orders: orders,
		versions: make([]int64, len(orders)), position: position, reading: reading,
		ids: rows.NewSet(idColumns), keys: rows.NewSet(keyColumns), instances: rows.NewSet(instanceColumns),
		commands: rows.NewSet(commandColumns), audit: rows.NewSet(auditColumns), events: rows.NewSet(eventColumns)}
	for i := range c.versions {
		c.versions[i] = 1
	}
	return c
}

// call commits one group.
func (c *ceiling) call(context.Context) (int, error) {
	group := min(ceilingGroup, len(c.orders))
	c.gather(group)
	s := c.statements
	c.conn.Queue(&s.begin, nil, nil)
	if c.reading {
		if err := c.read(group); err != nil {
			return 0, err
		}
	}
	one := [][]byte{[]byte(tenant)}
	c.conn.Queue(&s.update, append(one, c.instances.Params(true)...), nil)
	c.conn.Queue(&s.command, append(one, c.commands.Params(true)...), nil)
	c.conn.Queue(&s.head, append(one, int8Param(int64(group))), nil)
	c.conn.Queue(&s.audit, append(one, c.audit.Params(true)...), nil)
	c.conn.Queue(&s.emit, append(one, c.events.Params(true)...), nil)
	c.conn.Queue(&s.commit, nil, nil)
	if err := c.conn.Send(context.Background()); err != nil {
		return 0, fmt.Errorf("ceiling: %w", err)
	}
	return group, nil
}

// read locks the group's instances and looks up its keys.
func (c *ceiling) read(group int) error {
	found, known := 0, 0
	one := [][]byte{[]byte(tenant)}
	c.conn.Queue(&c.statements.lock, append(one, c.ids.Params(true)...), func(*rows.Row) error { found++; return nil })
	c.conn.Queue(&c.statements.lookup, append(one, c.keys.Params(true)...), func(*rows.Row) error { known++; return nil })
	if err := c.conn.Send(context.Background()); err != nil {
		return fmt.Errorf("ceiling: %w", err)
	}
	if found != group || known != 0 {
		return fmt.Errorf("ceiling: found %d of %d instances and %d keys", found, group, known)
	}
	return nil
}

// gather makes the rows of the next group.
func (c *ceiling) gather(group int) {
	now := time.Now()
	for _, s := range []*rows.Set{c.ids, c.keys, c.instances, c.commands, c.audit, c.events} {
		s.Reset()
	}
	first := c.position.Add(int64(group)) - int64(group) + 1
	for i := range group {
		at := c.n % len(c.orders)
		c.n++
		c.versions[at]++
		c.add(&c.orders[at], c.versions[at], first+int64(i), now)
	}
}

func (c *ceiling) add(o *order, version, position int64, now time.Time) {
	s, id := c.specimen, o.id
	from, to := statePlaced, stateHeld
	if version%2 == 1 {
		from, to = to, from
	}
	scope, key, hash := workflowName+":"+id.String(), commandKey(c.number, c.n), filler(c.n)
	c.ids.UUID(id)
	c.keys.Text(scope)
	c.keys.Text(key)

	c.instances.UUID(id)
	c.instances.Text(string(to))
	c.instances.Int8(version)
	c.instances.Bytes(s.data)
	c.instances.Bytes(hash)
	c.instances.Time(now)

	c.commands.Text(scope)
	c.commands.Text(key)
	c.commands.Bytes(hash)
	c.commands.Text("succeeded")
	addChange(c.commands, id, version)
	c.commands.Text(actor)
	c.commands.Int2(200)
	c.commands.Bytes(s.body)
	c.commands.Time(now)
	c.commands.Time(now)
	c.commands.Time(now.Add(24 * time.Hour))

	c.audit.Int8(position)
	addChange(c.audit, id, version)
	addStates(c.audit, from, to)
	c.audit.Text(actor)
	c.audit.Bytes(s.payload)
	c.audit.Bytes(s.data)
	c.audit.Text(scope)
	c.audit.Text(key)
	c.audit.Time(now)
	c.audit.Bytes(hash)

	c.events.Int8(position)
	c.events.Text(s.eventType)
	c.events.Int4(0)
	addChange(c.events, id, version)
	c.events.Text(string(to))
	c.events.Time(now)
	c.events.Text(o.key)
}

// addChange adds what three tables say of a transition in the same order.
func addChange(s *rows.Set, id uuid.UUID, version int64) {
	s.Text(workflowName)
	s.Text(flipping)
	s.UUID(id)
	s.Int8(version)
}

func addStates(s *rows.Set, from, to workflow.State) {
	s.Text(string(from))
	s.Text(string(to))
}
