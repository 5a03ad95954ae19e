package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/bouncer"
	"github.com/pawlhq/pawl/transitions"
)

// scenario is one line of the table. One of open and run says what is done: open
// returns callers that call again as soon as they are answered.
type scenario struct {
	name    string
	floor   string // the scenario that its rate is compared with; "" for none
	replays bool   // it asks again what is done already, and writes nothing
	offLog  bool   // it does not move the log's head
	lean    bool   // it has tables of its own
	apart   bool   // its commands are another tenant's, and are not counted
	flips   int    // how often each order is flipped before; 0 is never, or once for replays
	steps   int64  // transitions of one command; 0 is 1
	tenants int    // whose the orders are, in turns; 0: one's
	beside  int    // commands of another tenant that are in flight meanwhile
	pooled  bool   // it is run behind PgBouncer
	full    bool   // it is run on full tables
	warm    bool   // what replays read is in PostgreSQL's memory before
	open    func(ctx context.Context, e *env) ([]caller, error)
	run     func(ctx context.Context, e *env) (*sample, error)
}

// env is what a scenario's round is run with.
type env struct {
	Config
	db     *database
	first  int     // the number of the first order
	orders []order // they exist, at version 1
	past   *past   // what was loaded; nil: nothing, and every round begins with empty tables
	half   float64 // of the rate that was reached last, commands a second
	flip   *specimen
	note   *specimen
	ends   []func() error // of what the round has opened
}

// later has something done at the end of the round, before what was opened earlier
// is ended.
func (e *env) later(end func() error) { e.ends = append(e.ends, end) }

func (e *env) end() (err error) {
	for _, end := range slices.Backward(e.ends) {
		err = errors.Join(err, end())
	}
	e.ends = nil
	return err
}

// engine starts an engine as a program would, until the round ends; purging says
// whether it does what is due, too.
func (e *env) engine(ctx context.Context, c engine.Config, purging bool) (*engine.Engine, error) {
	pool, err := e.db.pool(ctx)
	if err != nil {
		return nil, err
	}
	e.later(func() error { pool.Close(); return nil })
	c.Pool, c.Schema, c.Workflows = pool, e.db.schema, append(c.Workflows, definition)
	c.Retention.Off = !purging            // what is purged, and when, is for the scenario to say
	c.Log = slog.New(slog.DiscardHandler) // what goes wrong is an error of the round
	eng, err := engine.New(c)
	if err != nil {
		return nil, err
	}
	e.later(func() error { eng.Stop(context.Background()); return nil })
	return eng, eng.Start(ctx)
}

// prepare fills empty tables with the orders, each placed through the engine,
// and returns how many transitions that took. Where they are to be replayed,
// each is flipped once besides. Full tables get orders that they do not have yet;
// these are flipped too, so that the pages where their keys belong, which are as
// many as the orders, were changed since the checkpoint.
func (e *env) prepare(ctx context.Context, s *scenario) (n int64, err error) {
	// It stands before everything else, so that a scenario neither writes the pages of
	// the one before nor, of the rows that are prepared now, full pages into the log.
	if err := e.db.exec(ctx, "CHECKPOINT"); err != nil {
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
	} else {
		e.spread(s.tenants)
	}
	turns := s.flips
	if turns == 0 && (s.replays || e.past != nil) {
		turns = 1
	}
	var commands []transitions.Command
	for i := range e.orders {
		c := placeAt(e.first + i)
		c.Tenant = e.orders[i].tenant
		commands = append(commands, c)
	}
	for n := range turns * len(e.orders) {
		commands = append(commands, change(flipping, &e.orders[n%len(e.orders)], commandKey(1, n)))
	}
	n = int64(len(commands))
	for i := range s.beside {
		commands = append(commands, scheduled(i))
	}
	eng, err := e.engine(ctx, engine.Config{}, false)
	if err == nil {
		err = many(ctx, eng, commands, false)
	}
	if err = errors.Join(err, e.end()); err != nil {
		return 0, err
	}
	if s.lean {
		if err := e.db.exec(ctx, fillLean); err != nil {
			return 0, err
		}
	}
	return n, e.db.settle(ctx, n)
}

// spread gives the orders to so many tenants, in turns.
func (e *env) spread(tenants int) {
	for i := range e.orders {
		e.orders[i] = orderAt(i)
		if tenants > 0 {
			e.orders[i] = orderOf(fmt.Sprintf("%s-%05d", tenant, i%tenants), i)
		}
	}
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
	base, err := e.db.head(ctx)
	if err != nil {
		return nil, err
	}
	if e.past == nil {
		base = 0 // the tables are emptied
	}
	n, err := e.prepare(ctx, s)
	if err != nil {
		return nil, err
	}
	before, err := e.db.count(ctx)
	if err != nil {
		return nil, err
	}
	m, err := e.measure(ctx, s)
	if err = errors.Join(err, e.end()); err != nil {
		return nil, err
	}
	after, err := e.db.count(ctx)
	if err != nil {
		return nil, err
	}
	m.cost = after.since(before)
	if s.lean {
		return m, e.db.verifyLean(ctx, m.all)
	}
	if !s.replays && !s.apart {
		n += m.all * max(s.steps, 1)
	}
	return m, e.db.verify(ctx, e.tenants(), base, n, !s.offLog)
}

// tenants are whose orders there are.
func (e *env) tenants() (list []string) {
	for _, o := range e.orders {
		list = append(list, o.tenant)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (e *env) measure(ctx context.Context, s *scenario) (*sample, error) {
	if s.pooled {
		b, err := bouncer.Start(ctx, e.db.url, bouncerSessions)
		if err != nil {
			return nil, err
		}
		direct := e.db.url
		e.db.url = b.Through(direct)
		e.later(func() error { e.db.url = direct; return b.Stop() })
	}
	if s.run != nil {
		return s.run(ctx, e)
	}
	callers, err := s.open(ctx, e)
	if err != nil {
		return nil, err
	}
	runtime.GC()
	return e.drive(ctx, callers)
}

// bouncerSessions is how many sessions of the server PgBouncer has for the
// engine, as by its default.
const bouncerSessions = 20
