package commit

import (
	"sync"
	"sync/atomic"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/internal/kernel/store"
)

// loading describes how a group reads instances and keys.
type loading struct {
	// waiting waits for instances that others hold, instead of leaving them out.
	waiting bool
	// blind skips the lookup of keys, and of instances that are about to be created. The primary keys detect duplicates; the group then runs
	// again with lookups. Without duplicates this saves a statement, and a creation saves its first round trip.
	blind bool
}

// queue queues the locks and then the look-up of the keys, so that a duplicate that was just committed is seen. It reports whether anything
// was queued.
func (l loading) queue(conn *rows.Conn, s *Statements, g *group) (some bool) {
	lock := &s.Lock
	if l.waiting {
		lock = &s.LockWaiting
	}
	for _, span := range g.spans() {
		some = l.lock(conn, lock, g, span) || some
	}
	if l.blind {
		return some
	}
	lookUp(conn, s, g)
	return true
}

func (l loading) lock(conn *rows.Conn, lock *Forms, g *group, span []*part) bool {
	ids := store.InstanceIDs()
	var slots []*slot
	for _, t := range span {
		for _, s := range t.existing(l.blind) {
			ids.Tenant(s.tenant)
			ids.UUID(s.id)
			slots = append(slots, s)
		}
	}
	if len(slots) == 0 {
		return false
	}
	conn.Queue(lock.of(span), args(span, ids), func(row *rows.Row) error {
		place := row.Int8()
		if err := row.Err(); err != nil {
			return err
		}
		s := slots[place-1]
		s.held, s.row = row.Bool(), row.TID()
		if s.unread = !s.held && !g.reads(row.Size()); s.unread {
			return nil
		}
		inst, err := store.ReadInstance(row, s.tenant)
		if inst != nil {
			s.loaded(inst)
		}
		return err
	})
	return true
}

func lookUp(conn *rows.Conn, s *Statements, g *group) {
	for _, span := range g.spans() {
		keys := store.CommandKeys()
		var states []*keyState
		for _, t := range span {
			for _, k := range t.keys() {
				keys.Tenant(t.tenant)
				keys.Text(k.scope)
				keys.Text(k.key)
				states = append(states, t.keyStates[k])
			}
		}
		conn.Queue(s.Lookup.of(span), args(span, keys), func(row *rows.Row) error {
			place := row.Int8()
			if err := row.Err(); err != nil {
				return err
			}
			record, err := store.ReadRecord(row)
			if record != nil {
				g.known(states[place-1], record)
			}
			return err
		})
	}
}

// answered reports whether each command had a final answer before the group.
func (g *group) answered() bool {
	for _, o := range g.ops {
		if o.p.Resumed != nil || o.p.Operation != nil {
			return false
		}
		c := g.part(o.p.Tenant).keyStates[o.key()]
		if c.unread {
			return false
		}
		record := c.record
		switch decide.Classify(record, o.p.Fingerprint, g.now) {
		case decide.KeyReplay, decide.KeyRefused, decide.KeyMismatch, decide.KeyGone:
		default:
			return false
		}
	}
	return true
}

// settledByKeys reports whether the primary keys detect all that a blind group did not read: each command writes its own key or follows one
// that does, and each missing instance is created.
func (g *group) settledByKeys() bool {
	for _, o := range g.ops {
		if o.leader != nil || o.verdict != decide.KeyNew {
			continue
		}
		unseen := o.p.Creates && o.p.BusinessKey != "" && g.part(o.p.Tenant).slots[o.p.Instance].inst == nil
		if unseen || o.p.Resumed == nil && !o.decision.Stored { // a command in flight has a row already
			return false
		}
	}
	return true
}

// dataFactor is the number of copies of an instance's data in a group: as read, and in the rows of the instance, the audit and the event.
const dataFactor = 4

// dataSizes holds the recent sizes of instances by workflow, to limit groups to what fits.
type dataSizes struct{ byWorkflow sync.Map } // string -> *atomic.Int64, in bytes

// learn records the size of the command's instance, with a weight of an eighth, or of a quarter if it is larger than usual.
func (s *dataSizes) learn(o *op) {
	if o.data == 0 {
		return
	}
	size, now := s.of(o.p.Workflow), int64(o.data)
	if before := size.Load(); now > before {
		size.Store(before + (now-before+3)/4)
	} else {
		size.Store(before - (before-now)/8)
	}
}

func (s *dataSizes) of(workflow string) *atomic.Int64 {
	if v, ok := s.byWorkflow.Load(workflow); ok {
		return v.(*atomic.Int64)
	}
	v, _ := s.byWorkflow.LoadOrStore(workflow, new(atomic.Int64))
	return v.(*atomic.Int64)
}

// weight estimates the memory that a command needs in a group, in bytes.
func (pipe *Pipeline) weight(o *op) int {
	return o.size() + dataFactor*int(pipe.sizes.of(o.p.Workflow).Load())
}

// reads reports whether n more bytes of the database fit in the group. The first ones always fit, and all of a group of one.
func (g *group) reads(n int) bool {
	if g.read > 0 && len(g.ops) > 1 && dataFactor*(g.read+n) > g.config.Limits.GroupBytes {
		return false
	}
	g.read += n
	return true
}

func (g *group) full() bool { return g.read+g.written >= g.config.Limits.GroupBytes }
