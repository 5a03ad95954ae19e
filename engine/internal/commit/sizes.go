package commit

import (
	"sync"
	"sync/atomic"
)

// A group weighs what it reads and what it writes. dataFactor is how often it has the data of
// an instance: as it was read, and in the rows of the instance, the audit and the event.
const dataFactor = 4

// dataSizes are how large the instances of each workflow have been lately, so that a group
// begins with no more commands than will fit.
type dataSizes struct{ byWorkflow sync.Map } // string -> *atomic.Int64, in bytes

// learn takes what a group has seen.
func (s *dataSizes) learn(g *group) {
	for _, o := range g.ops {
		if size := s.of(o.p.Workflow); o.data > 0 {
			size.Store(blend(size.Load(), int64(o.data)))
		}
	}
}

// blend gives a new size an eighth of the weight, and a quarter of what is larger.
func blend(before, now int64) int64 {
	if now > before {
		return before + (now-before+3)/4
	}
	return before - (before-now)/8
}

func (s *dataSizes) of(workflow string) *atomic.Int64 {
	if v, ok := s.byWorkflow.Load(workflow); ok {
		return v.(*atomic.Int64)
	}
	v, _ := s.byWorkflow.LoadOrStore(workflow, new(atomic.Int64))
	return v.(*atomic.Int64)
}

// weight is what a command will weigh in a group, about, in bytes.
func (pipe *Pipeline) weight(o *op) int {
	return o.size() + dataFactor*int(pipe.sizes.of(o.p.Workflow).Load())
}

// fits is how many of the commands fit into a group, from the first: one at least.
func (pipe *Pipeline) fits(ops []*op) int {
	bytes := pipe.weight(ops[0])
	for n := 1; n < len(ops); n++ {
		if bytes += pipe.weight(ops[n]); bytes > pipe.config.Limits.GroupBytes {
			return n
		}
	}
	return len(ops)
}

// reads reports whether there is room in the group for so many bytes of the database's. There
// always is for the first, and for all of a group of one.
func (g *group) reads(n int) bool {
	if g.read > 0 && len(g.ops) > 1 && dataFactor*(g.read+n) > g.config.Limits.GroupBytes {
		return false
	}
	g.read += n
	return true
}

// full reports whether what the group has read and decided is as much as it may hold.
func (g *group) full() bool { return g.read+g.written >= g.config.Limits.GroupBytes }

// hold counts what a decision writes.
func (g *group) hold(o *op) {
	d := &o.decision
	g.written += o.size() + len(d.Body)
	for i := 1; i < len(d.Events); i++ { // the first has the data
		g.written += len(d.Events[i].Payload)
	}
	if d.After != nil {
		o.data = len(d.After.Data)
		g.written += (dataFactor - 1) * o.data
	}
}
