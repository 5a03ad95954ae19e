package commit

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// op is one attempt to run a command in the pipeline. Its current holder may change it. It is settled once.
type op struct {
	p        *decide.Prepared
	route    uint64
	canceled <-chan struct{} // the caller's context; a command not yet begun is dropped
	deadline time.Time       // until when the retry lane waits for locks; set there
	places   [kindsOfList]place
	span     tracing.Span // that it is in; nil where it is not traced

	// What the current run of its group made of it.
	verdict  decide.KeyVerdict
	record   *transitions.Record // what is stored under its key
	decision decide.Decision
	data     int  // of its instance, in bytes; 0: it is not known
	step     int  // its place among the group's transitions of its tenant, from 1; 0: none
	leader   *op  // the earlier attempt with the same key in the same group
	leased   bool // a worker is reserved for its activity
	stopped  bool // it was accepted, and asked to stop by a later command of the same group
	receipt  transitions.Receipt
	err      error

	// unheard has the attempts that earlier runs leased in commits of unknown outcome. No worker runs them. CreatedAt is that of a new
	// command. A successful write proves that no earlier run was committed.
	unheard []decide.InFlight

	// keyed are the children with a business key that earlier runs have asked for. They are locked with the instance, to tell which
	// exist. The first run leaves that to the primary keys.
	keyed []uuid.UUID

	lostInHook int  // how often its own SQL has ended the connection
	uncertain  bool // the connection of an earlier run was lost, which may have been committed
	again      again

	settled atomic.Bool
	batch   *batch
}

// batch is what one caller waits for.
type batch struct {
	left atomic.Int64 // commands without an answer, and one until it is released
	done chan struct{}

	broken atomic.Bool // routes has entries
	mu     sync.Mutex
	routes map[uint64]error
}

// breakOff notes that a command of the route failed for now. The caller's later ones of that route must not be done without it: they fail
// with err, which has the code of the first, so that what was done is a beginning of what was asked, and asking again is safe.
func (b *batch) breakOff(route uint64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.routes == nil {
		b.routes = map[uint64]error{}
	}
	if b.routes[route] == nil {
		b.routes[route] = err
	}
	b.broken.Store(true)
}

// brokenBy is the failure of an earlier command of the route, or nil.
func (b *batch) brokenBy(route uint64) error {
	if !b.broken.Load() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.routes[route]
}

// newBatch is a batch that may still grow, until it is released.
func newBatch() *batch {
	b := &batch{done: make(chan struct{})}
	b.left.Store(1)
	return b
}

// release takes one off what is awaited.
func (b *batch) release() {
	if b.left.Add(-1) == 0 {
		close(b.done)
	}
}

// settle hands the answer over. The op must not be touched after it.
func (o *op) settle(receipt transitions.Receipt, err error) {
	o.receipt, o.err = receipt, err
	o.settled.Store(true)
	o.batch.release()
}

// failedForNow reports whether the command was not done, and may be later.
func (o *op) failedForNow() bool { return o.err != nil && workflow.CodeOf(o.err).Info().Retry }

// Behind is the error of a caller's later commands on an instance, where the one with the key has failed for now.
func Behind(key string, err error) error {
	return workflow.Errorf(workflow.CodeOf(err),
		"nothing was done: the command with key %q, which comes before it on the same instance, failed for now", key)
}

// answer settles a command with what is known of it. Where it has failed for now the caller's later ones of the route fail too.
func (o *op) answer() {
	if o.failedForNow() {
		o.batch.breakOff(o.route, Behind(o.p.Key, o.err))
	}
	o.settle(o.receipt, o.err)
}

// reset forgets an earlier run.
func (o *op) reset() {
	o.verdict, o.record, o.decision, o.step, o.leader, o.err = decide.KeyNew, nil, decide.Decision{}, 0, nil, nil
	o.receipt, o.leased, o.stopped, o.data = transitions.Receipt{}, false, false, 0
}

// gone reports whether the caller has left.
func (o *op) gone() bool {
	select {
	case <-o.canceled:
		return true
	default:
		return false
	}
}

// leaves reports whether the op can be let go: its caller has left, and nothing was done.
func (o *op) leaves() bool { return !o.uncertain && o.gone() }

// outcome is the op's answer, for a caller who may have left before it was settled.
func (o *op) outcome() (transitions.Receipt, error) {
	if !o.settled.Load() {
		return transitions.Receipt{}, workflow.Errorf(workflow.TimedOut, "no answer in time; ask again with the same key")
	}
	return o.receipt, o.err
}

var seed = maphash.MakeSeed()

// routeOf says with which others a command keeps its order: those of its instance, or of
// its key where the instance's id was made up for this very attempt.
func routeOf(p *decide.Prepared) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteString(p.Tenant)
	if p.Creates && p.BusinessKey == "" {
		h.WriteString(p.Scope)
		h.WriteByte(0)
		h.WriteString(p.Key)
	} else {
		h.Write(p.Instance[:])
	}
	return h.Sum64()
}

// size is roughly what the op weighs in a group, in bytes.
func (o *op) size() int {
	n := 512 + 3*len(o.p.Canonical)
	if r := o.p.Resumed; r != nil && r.Outcome != nil {
		n += 3 * len(r.Outcome.Result)
	}
	return n
}

// commandKey is a key within a tenant.
type commandKey struct{ scope, key string }

func (o *op) key() commandKey { return commandKey{o.p.Scope, o.p.Key} }

// slot is an instance as a group sees it while it folds its commands.
type slot struct {
	tenant     string
	id         uuid.UUID
	inst       *transitions.Instance // nil: there is none
	before     int64                 // its version in the database; 0: it is not there
	definition int                   // the version of its definition there
	row        rows.RowID            // where it stands there, while it is locked
	sought     bool                  // it is in the statement that locks
	held       bool                  // somebody else has it locked
	unread     bool                  // there was no room for it in memory
	changed    bool
}
