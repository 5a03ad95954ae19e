package commit

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// group holds the commands of one transaction and their decisions.
type group struct {
	config *Config // of its pipeline
	now    time.Time
	ops    []*op
	room   int       // initial size of each tenant's maps
	parts  []*part   // by tenant, in order
	sets   []*sets   // the rows to write
	blind  bool      // the keys were not looked up
	leased time.Time // when workers were reserved; leases start then or shortly after
	broken map[before]error
	hooked bool  // the user's SQL has run
	unread []*op // commands that did not fit in memory, in order

	read, written int // estimated bytes
}

// before identifies earlier commands of the same caller and route.
type before struct {
	batch *batch
	route uint64
}

// part is the share of a tenant in a group.
type part struct {
	tenant    string
	ops       []*op
	slots     map[uuid.UUID]*slot
	keyStates map[commandKey]*keyState
	steps     []*op // the commands that made a transition, in log order
	stored    []*op // the commands with a stored outcome, also starts of children
	head      int64 // the log's head after the group

	planned   []decide.Planned        // new commands of the engine
	disarmed  map[string]string       // scopes whose commands in flight are cancelled, except for the key
	resumed   []uuid.UUID             // instances whose pause has ended
	migrated  []store.MigratedFlights // of instances with a new version of their definition
	cancelled []store.Cancelled
	due       []store.Due
}

// keyState is the state of a key: from the database, or from a decision of this group.
type keyState struct {
	record *transitions.Record
	leader *op
	moved  bool // changed by an operation of this group
	unread bool // its record did not fit in memory
}

// newGroup sorts the ops by tenant.
func (pipe *Pipeline) newGroup(ops []*op) *group {
	g := &group{config: &pipe.config, now: pipe.config.Clock.Now(), ops: ops}
	if !slices.ContainsFunc(ops, func(o *op) bool { return o.p.Tenant != ops[0].p.Tenant }) {
		g.room = len(ops) // otherwise most parts are small
	}
	for _, o := range ops {
		o.reset()
		t := g.part(o.p.Tenant)
		t.ops = append(t.ops, o)
		if t.slots[o.p.Instance] == nil {
			t.slots[o.p.Instance] = &slot{tenant: t.tenant, id: o.p.Instance}
		}
		for _, id := range o.keyed {
			if t.slots[id] == nil {
				t.slots[id] = &slot{tenant: t.tenant, id: id}
			}
		}
		t.expect(o.key())
		if target, ok := o.target(); ok {
			t.expect(target)
		}
	}
	return g
}

func (t *part) expect(key commandKey) {
	if t.keyStates[key] == nil {
		t.keyStates[key] = &keyState{}
	}
}

func (g *group) part(tenant string) *part {
	i, found := slices.BinarySearchFunc(g.parts, tenant, func(p *part, t string) int { return strings.Compare(p.tenant, t) })
	if !found {
		g.parts = slices.Insert(g.parts, i, &part{tenant: tenant, slots: make(map[uuid.UUID]*slot, g.room),
			keyStates: make(map[commandKey]*keyState, g.room)})
	}
	return g.parts[i]
}

// spans returns the parts by statement: all of them together, or each alone with OneTenantPerStatement.
func (g *group) spans() [][]*part {
	if !g.config.Limits.OneTenantPerStatement {
		return [][]*part{g.parts}
	}
	return slices.Collect(slices.Chunk(g.parts, 1))
}

// existing returns the instances that may exist in the database, in lock order. blind excludes all creations; others with a generated id
// are always excluded.
func (t *part) existing(blind bool) []*slot {
	list := make([]*slot, 0, len(t.slots))
	for _, o := range t.ops {
		fresh := o.p.Creates && (blind || o.p.BusinessKey == "")
		if s := t.slots[o.p.Instance]; !fresh && !s.sought {
			s.sought = true
			list = append(list, s)
		}
		for _, id := range o.keyed {
			if s := t.slots[id]; !s.sought {
				s.sought = true
				list = append(list, s)
			}
		}
	}
	slices.SortFunc(list, compareSlots)
	return list
}

func compareSlots(a, b *slot) int { return bytes.Compare(a.id[:], b.id[:]) }

func (s *slot) loaded(inst *transitions.Instance) {
	s.inst, s.before, s.definition = inst, inst.Version, inst.Definition
}

// known records a stored command, if it fits in memory.
func (g *group) known(c *keyState, r *transitions.Record) {
	if c.unread = !g.reads(len(r.Body) + len(r.Request)); !c.unread {
		c.record = r
	}
}

// outdated reports whether an instance changed between the statement that locked it and the look-up of the keys, which has another
// snapshot: then a command has made a later version.
func (g *group) outdated() bool {
	for _, t := range g.parts {
		for _, c := range t.keyStates {
			if c.record == nil {
				continue
			}
			if s := t.slots[c.record.Instance]; s != nil && !s.held && !s.unread && c.record.Version > s.before {
				return true
			}
		}
	}
	return false
}

// decide decides the ops in the order of their arrival. It returns the ops whose instance another transaction has locked. Ops that do not
// fit in memory are added to g.unread.
func (g *group) decide() (held []*op) {
	kept := g.ops[:0:0]
	var behind map[uint64]bool // the routes of ops that did not fit
	for _, o := range g.ops {
		t := g.part(o.p.Tenant)
		target, operates := o.target()
		switch s := t.slots[o.p.Instance]; {
		case s.held:
			held = append(held, o)
			continue
		case s.unread || t.keyStates[o.key()].unread || operates && t.keyStates[target].unread || g.full() && len(kept) > 0 || behind[o.route]:
			if behind == nil {
				behind = map[uint64]bool{}
			}
			behind[o.route] = true
			g.unread = append(g.unread, o)
			continue
		}
		kept = append(kept, o)
		if o.err = g.broken[before{o.batch, o.route}]; o.err == nil {
			g.decideOne(t, o)
			g.breakOff(o)
		}
	}
	if len(kept) < len(g.ops) {
		g.ops = kept
	}
	return held
}

// breakOff makes the caller's later commands of the route fail after a temporary failure.
func (g *group) breakOff(o *op) {
	if !o.failedForNow() {
		return
	}
	if g.broken == nil {
		g.broken = map[before]error{}
	}
	g.broken[before{o.batch, o.route}] = Behind(o.p.Key, o.err)
}

func (g *group) decideOne(t *part, o *op) {
	c := t.keyStates[o.key()]
	switch {
	case o.p.Resumed != nil:
		spare, void := t.disarmed[o.p.Scope]
		lost := void && spare != o.p.Key && o.p.Resumed.Phase == transitions.Scheduled || c.leader != nil || c.moved
		if !lost {
			o.record = c.record
		}
		if lost || !g.blind && !decide.HeldBy(c.record, o.p.Resumed) { // without the look-up the write fails
			o.err = decide.ErrNotHeld()
			return
		}
	case c.leader != nil:
		o.copyAnswerOf(c.leader)
		return
	default:
		if o.verdict = decide.Classify(c.record, o.p.Fingerprint, g.now); o.verdict != decide.KeyNew {
			o.record = c.record
			o.receipt, o.err = o.verdict.Answer(c.record)
			return
		}
	}
	s := t.slots[o.p.Instance]
	if s.inst != nil {
		o.data = len(s.inst.Data)
	}
	find := g.config.Definitions.Find
	if o.err = o.begin(s.inst, find); o.err != nil {
		return
	}
	var w *workflow.Workflow
	if w, o.err = decide.VersionFor(o.p, s.inst, find); o.err != nil {
		return
	}
	if o.begins() && g.config.Paused != nil && g.config.Paused(t.tenant, o.p.Workflow) {
		o.err = workflow.Errorf(workflow.Paused, "workflow %q is paused; try again with the same key when it is resumed", o.p.Workflow)
		return
	}
	var p *decide.Prepared
	if p, o.err = t.aimed(o); o.err != nil {
		return
	}
	g.take(t, s, c, o, decide.DecideAll(p, w, s.inst, find, func(id uuid.UUID) bool { // whether a child exists, as far as the group knows
		if !slices.Contains(o.keyed, id) {
			o.keyed = append(o.keyed, id)
		}
		s := t.slots[id]
		return s != nil && (s.inst != nil || s.held || s.unread)
	}, g.now))
}

// begin prepares a creation again if the default version has changed since.
func (o *op) begin(inst *transitions.Instance, find decide.Find) error {
	if inst != nil || !o.p.Creates || o.p.Definition == find(o.p.Workflow, 0) {
		return nil
	}
	p, err := o.p.BeginWith(find(o.p.Workflow, 0))
	if err == nil {
		o.p = p
	}
	return err
}

// copyAnswerOf makes the op a duplicate of an op in this group.
func (o *op) copyAnswerOf(leader *op) {
	switch {
	case leader.p.Fingerprint != o.p.Fingerprint:
		o.verdict = decide.KeyMismatch
		_, o.err = o.verdict.Answer(nil)
		return
	case leader.decision.Flight != nil:
		o.verdict = decide.KeyActive
	case leader.decision.Status == transitions.FailedFinal:
		o.verdict = decide.KeyRefused
	default:
		o.verdict = decide.KeyReplay
	}
	o.leader = leader
}

// take adds a decision to the group.
func (g *group) take(t *part, s *slot, c *keyState, o *op, d decide.Decision) {
	o.decision = d
	if !d.Stored {
		o.err = d.Err
		return
	}
	c.leader = o
	g.written += o.size() + len(d.Body)
	for i := 1; i < len(d.Events); i++ { // the first has the data
		g.written += len(d.Events[i].Payload)
	}
	t.stored = append(t.stored, o)
	t.noteOthers(o)
	if d.After == nil {
		return
	}
	var prev [32]byte
	if s.inst != nil {
		prev = s.inst.Chain
	}
	o.decision.Entry.Hash = audit.Link(prev, &o.decision.Entry)
	d.After.Chain = o.decision.Entry.Hash
	s.inst, s.changed = d.After, true
	o.data = len(d.After.Data)
	g.written += (dataFactor - 1) * o.data
	t.steps = append(t.steps, o)
	o.step = len(t.steps)
	for _, child := range d.Children {
		born := &op{p: child.Prepared}
		s := t.slots[born.p.Instance]
		if s == nil {
			s = &slot{tenant: t.tenant, id: born.p.Instance}
			t.slots[s.id] = s
		}
		g.take(t, s, &keyState{}, born, child.Decision)
	}
}

// events returns the events of a committed part.
func (t *part) events() (list []transitions.Event) {
	for _, o := range t.steps {
		for _, e := range o.decision.Events {
			e.Position = t.head - int64(len(t.steps)) + int64(o.step)
			list = append(list, e)
		}
	}
	return list
}

// answers sets the answer of each op, with the positions of the transitions. It settles nothing.
func (g *group) answers() {
	for _, t := range g.parts {
		for _, o := range t.stored {
			var position int64
			if o.step > 0 && t.head > 0 {
				position = t.head - int64(len(t.steps)) + int64(o.step)
			}
			o.receipt = decide.ReceiptOf(o.p, &o.decision, position)
			if o.decision.Flight != nil {
				r := g.rowOf(o).Record
				r.Position = o.receipt.Position
				if o.leased {
					r.ClaimedAt, r.LockedUntil = g.now, g.now.Add(g.config.Lease)
				}
				o.receipt.Record = &r
			}
		}
	}
	for _, o := range g.ops {
		if o.leader != nil {
			o.receipt = o.leader.receipt
			o.receipt.Replayed = true
		}
	}
}
