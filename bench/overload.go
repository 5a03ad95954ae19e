package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// overload is what became of a node to which more commands came than it can do.
type overload struct {
	sustained float64       // commands a second that it does for callers who wait for their answers
	offered   float64       // a second, whether those before were answered or not
	refused   latency       // of what was refused, from the call; of what was done it counts from when that was due
	late      latency       // how long after it was due a call was made: callers and node share the machine
	normal    time.Duration // from when that ended until calls are as fast as before, about
}

// How much longer than a scenario's time there are too many commands.
const overloadTimes = 10

// errRefused is the answer of a node that says that it has too much to do, and has done nothing.
var errRefused = errors.New("refused")

// A newcomer makes callers: their numbers are their own. A call that is refused has the error errRefused.
type newcomer func(i int) (caller, error)

// overloading is a scenario of so many callers who wait for their answers; then commands come at so many times the rate that
// these have reached; then the callers are back.
func overloading(name string, n int, times float64, open func(context.Context, *env) (newcomer, error)) *scenario {
	return &scenario{name: name, run: func(ctx context.Context, e *env) (*sample, error) {
		newOne, err := open(ctx, e)
		if err != nil {
			return nil, err
		}
		callers := make([]caller, n)
		for i := range callers {
			c, err := newOne(i)
			if err != nil {
				return nil, err
			}
			callers[i] = persistent(c)
		}
		before, err := e.drive(ctx, callers)
		if err != nil {
			return nil, err
		}
		a := &arrivals{newOne: newOne, made: n}
		m := &sample{overload: &overload{sustained: before.rate()}}
		begun := time.Now()
		err = a.come(ctx, times*before.rate(), overloadTimes*e.Duration)
		ended := time.Now()
		after, err2 := backToNormal(ctx, callers, 2*before.latency.p99)
		m.overload.normal = time.Since(ended) - after.took
		a.work.Wait()
		if err := errors.Join(err, err2, a.err); err != nil {
			return nil, err
		}
		m.overload.offered = float64(a.came) / ended.Sub(begun).Seconds()
		m.overload.refused, m.overload.late = latencyOf(a.refused), latencyOf(a.late)
		m.commands, m.took, m.latency = int64(len(a.served)), a.last.Sub(begun), latencyOf(a.served)
		m.all = before.all + int64(len(a.served)) + after.all
		return m, ctx.Err()
	}}
}

// persistent callers come again when they are refused. It is one call, which takes as long.
func persistent(call caller) caller {
	return func(ctx context.Context) (int, error) {
		for {
			n, err := call(ctx)
			if !errors.Is(err, errRefused) || !backoff.Sleep(ctx, 10*time.Millisecond) {
				return n, err
			}
		}
	}
}

// sliceTime is the interval over which calls are compared with their former speed, and normalSlices the number of consecutive intervals at
// that speed that count as recovery. A caller that has not recovered after normalLimit misses every goal.
const (
	sliceTime    = 50 * time.Millisecond
	normalSlices = 4
	normalLimit  = 20 * time.Second
)

// backToNormal has callers call until the p99 is what it should be for some time, and tells how much they did in all and how long it
// has been so.
func backToNormal(ctx context.Context, callers []caller, p99 time.Duration) (*sample, error) {
	done, begun, good := &sample{}, time.Now(), 0
	for good < normalSlices && time.Since(begun) < normalLimit {
		s, err := phase(ctx, callers, 0, sliceTime)
		if err != nil {
			return done, err
		}
		done.all += s.all
		if done.took += s.took; s.latency.p99 > p99 {
			done.took, good = 0, 0
			continue
		}
		good++
	}
	return done, nil
}

// arrivals are commands that arrive at a rate, each from a free caller, or from a new one if none is free.
type arrivals struct {
	newOne newcomer
	made   int // callers
	came   int64
	work   sync.WaitGroup

	mu      sync.Mutex
	last    time.Time // when the last one was served
	served  []time.Duration
	refused []time.Duration
	late    []time.Duration
	err     error // the first
}

// come returns when the last one came; those that wait are waited for with a.work. An error of theirs is in a.err then.
func (a *arrivals) come(ctx context.Context, rate float64, d time.Duration) error {
	begun, due := time.Now(), make(chan time.Time)
	defer close(due)
	ends := begun.Add(d)
	for ; time.Now().Before(ends); a.came++ {
		at := begun.Add(time.Duration(float64(a.came) / rate * float64(time.Second)))
		if early := time.Until(at); early > 0 && !backoff.Sleep(ctx, max(early, time.Millisecond)) {
			return ctx.Err()
		}
		select {
		case due <- at:
		default:
			c, err := a.newOne(a.made)
			if err != nil {
				return err
			}
			a.made++
			a.work.Go(func() { a.serve(ctx, c, due) })
			due <- at
		}
	}
	return nil
}

// serve calls when something is due.
func (a *arrivals) serve(ctx context.Context, call caller, due <-chan time.Time) {
	var served, refused, late []time.Duration
	var last time.Time
	var failed error
	for at := range due {
		if failed != nil {
			continue // the others go on to the end
		}
		called := time.Now()
		_, err := call(ctx)
		now := time.Now()
		late = append(late, called.Sub(at))
		switch {
		case err == nil:
			served, last = append(served, now.Sub(at)), now
		case errors.Is(err, errRefused):
			refused = append(refused, now.Sub(called))
		default:
			failed = err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if last.After(a.last) {
		a.last = last
	}
	a.served, a.refused, a.late = append(a.served, served...), append(a.refused, refused...), append(a.late, late...)
	if a.err == nil {
		a.err = failed
	}
}

// inProcess makes callers of an engine, who flip any order.
func inProcess(ctx context.Context, e *env) (newcomer, error) {
	eng, err := e.engine(ctx, engine.Config{}, false)
	return func(i int) (caller, error) {
		next := flipsOfAny(e, i)
		return func(ctx context.Context) (int, error) {
			r, err := eng.Submit(ctx, next())
			if workflow.CodeOf(err) == workflow.Overloaded {
				return 0, errRefused
			}
			return 1, check(r, err, false)
		}, nil
	}, err
}

// flipsOfAny flips one order after the other; callers whose numbers are near begin with different ones.
func flipsOfAny(e *env, i int) func() transitions.Command {
	k := 0
	return func() transitions.Command {
		c := change(flipping, &e.orders[(i*41+k)%len(e.orders)], commandKey(firstCaller+i, k))
		k++
		return c
	}
}

// slowGroup is how many commands there are in a group of a slow database, at most, and slowFor how much longer one takes there.
const (
	slowGroup = 16
	slowFor   = 50 * time.Millisecond
)

// overREST makes clients of a server. Where slow is set each statement that writes commands takes slowFor longer: then a machine that has
// the clients too can send many times as much as the server does.
func overREST(slow bool) func(context.Context, *env) (newcomer, error) {
	return func(ctx context.Context, e *env) (newcomer, error) {
		var c engine.Config
		if slow {
			c.Pipeline.GroupSize = slowGroup
			if err := e.slowDown(ctx); err != nil {
				return nil, err
			}
		}
		_, address, err := e.serve(ctx, c)
		return func(i int) (caller, error) {
			c, err := e.dial(ctx, address, "Pawl-Actor: "+actor)
			next := flipsOfAny(e, i)
			return func(context.Context) (int, error) {
				f := next()
				_, err := c.post("/v1/instances/"+f.Instance.String()+"/"+flipping, f.Key, f.Payload)
				return 1, err
			}, err
		}, err
	}
}

// slowDown makes the database slow until the round ends.
func (e *env) slowDown(ctx context.Context) error {
	e.later(func() error {
		return e.db.exec(context.Background(), "DROP TRIGGER slow ON {pawl}.command; DROP FUNCTION {pawl}.slow")
	})
	return e.db.exec(ctx, fmt.Sprintf(`CREATE FUNCTION {pawl}.slow() RETURNS trigger LANGUAGE plpgsql AS
		$$BEGIN PERFORM pg_sleep(%f); RETURN NULL; END$$;
		CREATE TRIGGER slow AFTER INSERT ON {pawl}.command FOR EACH STATEMENT EXECUTE FUNCTION {pawl}.slow()`, slowFor.Seconds()))
}

func servedShare(s *sample) float64 { return s.rate() / s.overload.sustained }
func refusedP99(s *sample) float64  { return float64(s.overload.refused.p99) / 1e6 }
func untilNormal(s *sample) float64 { return s.overload.normal.Seconds() }
