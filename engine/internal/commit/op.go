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
	deadline time.Time       // for locks; set by the retry lane
	places   [kindsOfList]place
	span     tracing.Span // nil if it is not traced

	// What the current run of its group made of it.
	verdict  decide.KeyVerdict
	record   *transitions.Record // stored under its key
	decision decide.Decision
	data     int  // size of its instance in bytes; 0 if unknown
	step     int  // ordinal among the group's transitions of its tenant, from 1; 0: none
	leader   *op  // the earlier attempt with the same key in the same group
	leased   bool // a worker is reserved for its activity
	stopped  bool // a later command of the same group has requested its stop
	receipt  transitions.Receipt
	err      error

	// ambiguous has the attempts that earlier runs leased in commits of unknown outcome. No worker runs them. CreatedAt is that of a new
	// command. A successful write proves that no earlier run was committed.
	ambiguous []decide.InFlight

	// keyed are the children with a business key that earlier runs have asked for. They are locked with the instance, to tell which
	// exist. The first run leaves that to the primary keys.
	keyed []uuid.UUID

	lostInHook int  // attempts in which its own SQL ended the connection
	uncertain  bool // an earlier run may have been committed
	again      again

	settled atomic.Bool
	batch   *batch
}

// batch is the set of commands that one caller waits for.
type batch struct {
	left atomic.Int64 // commands without an answer, plus one until the release
	done chan struct{}

	broken atomic.Bool // routes has entries
	mu     sync.Mutex
	routes map[uint64]error
}

// breakOff records that a command of the route failed temporarily. Later ones of the caller on that route fail with err, so that a retry of
// the whole list is safe.
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

func (b *batch) brokenBy(route uint64) error {
	if !b.broken.Load() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.routes[route]
}

// newBatch returns a batch that can grow until it is released.
func newBatch() *batch {
	b := &batch{done: make(chan struct{})}
	b.left.Store(1)
	return b
}

func (b *batch) release() {
	if b.left.Add(-1) == 0 {
		close(b.done)
	}
}

// settle delivers the answer. The op must not be used after it.
func (o *op) settle(receipt transitions.Receipt, err error) {
	o.receipt, o.err = receipt, err
	o.settled.Store(true)
	o.batch.release()
}

// failedForNow reports a temporary failure.
func (o *op) failedForNow() bool { return o.err != nil && workflow.CodeOf(o.err).Info().Retry }

// Behind returns the error of later commands of a caller on an instance, after the command with the key has failed temporarily.
func Behind(key string, err error) error {
	return workflow.Errorf(workflow.CodeOf(err),
		"nothing was done: the command with key %q, which comes before it on the same instance, failed for now", key)
}

// answer settles a command. After a temporary failure the later ones of the route fail too.
func (o *op) answer() {
	if o.failedForNow() {
		o.batch.breakOff(o.route, Behind(o.p.Key, o.err))
	}
	o.settle(o.receipt, o.err)
}

func (o *op) reset() {
	o.verdict, o.record, o.decision, o.step, o.leader, o.err = decide.KeyNew, nil, decide.Decision{}, 0, nil, nil
	o.receipt, o.leased, o.stopped, o.data = transitions.Receipt{}, false, false, 0
}

func (o *op) gone() bool {
	select {
	case <-o.canceled:
		return true
	default:
		return false
	}
}

// leaves reports whether the op can be dropped: its caller has left, and nothing was done.
func (o *op) leaves() bool { return !o.uncertain && o.gone() }

// outcome returns the answer, or TimedOut for a caller who has left before.
func (o *op) outcome() (transitions.Receipt, error) {
	if !o.settled.Load() {
		return transitions.Receipt{}, workflow.Errorf(workflow.TimedOut, "no answer in time; ask again with the same key")
	}
	return o.receipt, o.err
}

var seed = maphash.MakeSeed()

// routeOf identifies the commands that keep their order: those of an instance, or of a key if the instance's id was generated for this
// attempt.
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

// size estimates the memory that the op needs in a group, in bytes.
func (o *op) size() int {
	n := 512 + 3*len(o.p.Canonical)
	if r := o.p.Resumed; r != nil && r.Outcome != nil {
		n += 3 * len(r.Outcome.Result)
	}
	return n
}

type commandKey struct{ scope, key string }

func (o *op) key() commandKey { return commandKey{o.p.Scope, o.p.Key} }

// slot is the state of an instance in a group.
type slot struct {
	tenant     string
	id         uuid.UUID
	inst       *transitions.Instance // nil: there is none
	before     int64                 // its version in the database; 0: it is not there
	definition int                   // the version of its definition there
	row        rows.RowID            // its position there while it is locked
	sought     bool                  // it is in the statement that locks
	held       bool                  // another transaction has locked it
	unread     bool                  // it did not fit in memory
	changed    bool
}
