package bench

import (
	"context"
	"runtime"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
)

// scenario is one line of the table.
type scenario struct {
	name    string
	section section
	floor   string // the scenario that its rate is compared with; "" for none
	replays bool   // it asks again what is done already, and writes nothing
	ceiling bool   // others are compared with it
	offLog  bool   // it does not move the log's head
	flips   int    // how often each order is flipped before; 0 is never, or once for replays
	full    bool   // it runs on full tables
	once    bool   // it is run in the first round only: no other finds what that found
	warm    bool   // what replays read is in PostgreSQL's memory before
	steps   int64  // transitions of one command; 0 is 1
	run     func(ctx context.Context, e *env) (*sample, error)
}

type section int

const (
	theFloor section = iota
	theCeiling
	theEngine
	theRelay
	theAPI
	theStreams
)

// env is what a scenario's round is run with.
type env struct {
	db       *database
	pipeline engine.PipelineConfig
	first    int     // the number of the first order
	orders   []order // they exist, at version 1
	phases   phases
	nats     string
	past     *past   // what was loaded; nil: nothing, and every round begins with empty tables
	rounds   int     // that are run of every scenario
	half     float64 // of the rate that was reached last, commands a second
	flip     *specimen
	note     *specimen
}

// closedLoop is a scenario's run by callers that call again as soon as they are
// answered. open returns them, and how to end what it opened.
func closedLoop(open func(ctx context.Context, e *env) (callers []caller, end func(), err error)) func(context.Context, *env) (*sample, error) {
	return func(ctx context.Context, e *env) (*sample, error) {
		callers, end, err := open(ctx, e)
		if err != nil {
			return nil, err
		}
		defer end()
		runtime.GC()
		return drive(ctx, callers, e.phases)
	}
}

// share is the orders that the i-th of n callers has for itself.
func share(orders []order, i, n int) []order {
	return orders[i*len(orders)/n : (i+1)*len(orders)/n]
}

// prepare fills empty tables with the orders, each placed through the engine,
// and returns how many transitions that took. Where they are to be replayed,
// each is flipped once besides. Full tables get orders that they do not have yet;
// these are flipped too, so that the pages where their keys belong, which are as
// many as the orders, were changed since the checkpoint.
func (e *env) prepare(ctx context.Context, s *scenario) (n int64, err error) {
	if err := e.db.check(ctx); err != nil {
		return 0, err
	}
	if s.warm {
		if err := e.db.prewarm(ctx); err != nil {
			return 0, err
		}
	}
	if e.past != nil {
		e.renew()
	} else if err := e.db.empty(ctx); err != nil {
		return 0, err
	}
	turns := s.flips
	if turns == 0 && (s.replays || e.past != nil) {
		turns = 1
	}
	commands := make([]transitions.Command, 0, (1+turns)*len(e.orders))
	for i := range e.orders {
		commands = append(commands, placeAt(e.first+i))
	}
	for n := range turns * len(e.orders) {
		commands = append(commands, change(flipping, &e.orders[n%len(e.orders)], commandKey(1, n)))
	}
	eng, end, err := e.engine(ctx, engine.Config{}, false)
	if err != nil {
		return 0, err
	}
	defer end()
	for _, reply := range eng.SubmitMany(ctx, commands) {
		if err := check(reply.Receipt, reply.Err, false); err != nil {
			return 0, err
		}
	}
	n = int64(len(commands))
	return n, e.db.settle(ctx, n)
}

// renew takes other orders, with numbers that no order has had.
func (e *env) renew() {
	e.first = max(e.first+len(e.orders), e.past.instances)
	for i := range e.orders {
		e.orders[i] = orderAt(e.first + i)
	}
}

// round measures a scenario once, and checks that what it claims to have
// committed is there.
func (e *env) round(ctx context.Context, s *scenario) (*sample, error) {
	var base int64 // transitions that full tables hold before
	if e.past != nil {
		var err error
		if base, err = e.db.head(ctx); err != nil {
			return nil, err
		}
	}
	prepared, err := e.prepare(ctx, s)
	if err != nil {
		return nil, err
	}
	before, err := e.db.count(ctx)
	if err != nil {
		return nil, err
	}
	m, err := s.run(ctx, e)
	if err != nil {
		return nil, err
	}
	after, err := e.db.count(ctx)
	if err != nil {
		return nil, err
	}
	m.cost = after.since(before)
	var all int64
	if !s.replays {
		all = m.all
	}
	if e.past != nil {
		return m, e.db.verifySince(ctx, base, prepared+all)
	}
	return m, e.db.verify(ctx, prepared+all, prepared+all*max(s.steps, 1), !s.offLog)
}
