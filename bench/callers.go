package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// check refuses every answer but the one that a scenario is about.
func check(r transitions.Receipt, err error, replayed bool) error {
	if err == nil {
		err = r.Err()
	}
	if err == nil && r.Replayed != replayed {
		err = fmt.Errorf("replayed is %v: %s", r.Replayed, r.Body)
	}
	if e, ok := errors.AsType[*workflow.Error](err); ok && e.Cause != nil {
		return fmt.Errorf("%w (%w)", err, e.Cause)
	}
	return err
}

// share is the orders that the i-th of n callers has for itself.
func share(orders []order, i, n int) []order {
	return orders[i*len(orders)/n : (i+1)*len(orders)/n]
}

// commander gives the i-th of n callers its next command.
type commander func(e *env, i, n int) func() transitions.Command

// firstCaller is the number of the first caller, which is in the keys of its
// commands: 0 and 1 prepared the tables.
const firstCaller = 2

// changing are transitions on instances that no other caller touches.
func changing(transition string) commander {
	return func(e *env, i, n int) func() transitions.Command {
		own, k := share(e.orders, i, n), 0
		return func() transitions.Command {
			c := change(transition, &own[k%len(own)], commandKey(firstCaller+i, k))
			k++
			return c
		}
	}
}

var flips = changing(flipping)

// flipsAtRandom flips orders of a caller in random order. Round-robin order would prefer the orders that were not updated for longest,
// which a migration takes first, so the two would keep colliding.
func flipsAtRandom(e *env, i, n int) func() transitions.Command {
	own, k, random := share(e.orders, i, n), 0, rand.New(rand.NewPCG(uint64(i), 0))
	return func() transitions.Command {
		k++
		return change(flipping, &own[random.IntN(len(own))], commandKey(firstCaller+i, k))
	}
}

// notes are transitions that all go to one instance.
func notes(e *env, i, _ int) func() transitions.Command {
	k := 0
	return func() transitions.Command {
		k++
		return change(noting, &e.orders[0], commandKey(firstCaller+i, k))
	}
}

// places are creations.
func places(_ *env, i, _ int) func() transitions.Command {
	k := (firstCaller + i) * 10_000_000
	return func() transitions.Command {
		k++
		return placeAt(k)
	}
}

// replays ask again for the flips that the preparation has made.
func replays(e *env, i, n int) func() transitions.Command {
	begin := i * len(e.orders) / n
	own, k := share(e.orders, i, n), 0
	return func() transitions.Command {
		at := k % len(own)
		k++
		return change(flipping, &own[at], commandKey(1, begin+at))
	}
}

// onEngine makes callers of an engine.
func onEngine(n int, of func(e *env, eng *engine.Engine, i int) caller) func(context.Context, *env) ([]caller, error) {
	return onEngineWith(engine.Config{}, n, of)
}

func onEngineWith(c engine.Config, n int, of func(e *env, eng *engine.Engine, i int) caller) func(context.Context, *env) ([]caller, error) {
	return func(ctx context.Context, e *env) ([]caller, error) {
		eng, err := e.engine(ctx, c, false)
		list := make([]caller, n)
		for i := range list {
			list[i] = of(e, eng, i)
		}
		return list, err
	}
}

// submitter submits one command after the other.
func submitter(eng *engine.Engine, next func() transitions.Command, replayed bool) caller {
	return func(ctx context.Context) (int, error) {
		r, err := eng.Submit(ctx, next())
		return 1, check(r, err, replayed)
	}
}

// submitters submit commands that are new.
func submitters(e *env, eng *engine.Engine, n int, of commander) []caller {
	list := make([]caller, n)
	for i := range list {
		list[i] = submitter(eng, of(e, i, n), false)
	}
	return list
}

func submitting(name, floor string, n int, of commander, replayed bool) *scenario {
	return &scenario{name: name, floor: floor, replays: replayed,
		open: onEngine(n, func(e *env, eng *engine.Engine, i int) caller { return submitter(eng, of(e, i, n), replayed) })}
}

// many hands commands over at once.
func many(ctx context.Context, eng *engine.Engine, commands []transitions.Command, replayed bool) error {
	for _, reply := range eng.SubmitMany(ctx, commands) {
		if err := check(reply.Receipt, reply.Err, replayed); err != nil {
			return err
		}
	}
	return nil
}

// manyBatch is how many commands a caller of SubmitMany hands over at once.
const manyBatch = 1000

func submittingMany(name string, n int, of commander, replayed bool) *scenario {
	return &scenario{name: name, floor: floorMany, replays: replayed,
		open: onEngine(n, func(e *env, eng *engine.Engine, i int) caller {
			next, batch := of(e, i, n), make([]transitions.Command, manyBatch)
			return func(ctx context.Context) (int, error) {
				for i := range batch {
					batch[i] = next()
				}
				return len(batch), many(ctx, eng, batch, replayed)
			}
		})}
}

// consuming is a scenario of callers that hand over one message after the other,
// each of which flips an order that no other caller touches.
func consuming(name, floor string, n int) *scenario {
	return &scenario{name: name, floor: floor,
		open: onEngine(n, func(e *env, eng *engine.Engine, i int) caller {
			own, k := share(e.orders, i, n), 0
			return func(ctx context.Context) (int, error) {
				o := &own[k%len(own)]
				m := transitions.Message{Consumer: desk, ID: commandKey(firstCaller+i, k), Type: "order.held", Delivery: 1,
					Body: fmt.Appendf(nil, `{"order":"%s",%s`, o.key, changeJSON[1:])}
				k++
				r, err := eng.Consume(ctx, m)
				return 1, check(r, err, false)
			}
		})}
}

// awaiting is a scenario of callers that submit a command whose activity does
// nothing, and wait for its end. Each makes two transitions, in two commits.
func awaiting(name, floor string, n int) *scenario {
	return &scenario{name: name, floor: floor, steps: 2,
		open: onEngine(n, func(e *env, eng *engine.Engine, i int) caller {
			next := changing(asking)(e, i, n)
			return func(ctx context.Context) (int, error) {
				r, err := eng.Submit(ctx, next())
				if err == nil && r.InFlight() {
					r, err = eng.Await(ctx, transitions.Ref{Tenant: tenant, Scope: r.Record.Scope, Key: r.Record.Key})
				}
				return 1, check(r, err, r.Replayed) // Await replays
			}
		})}
}

// scheduled is the i-th command that waits during a scenario: of another tenant, and due much later.
func scheduled(i int) transitions.Command {
	c := placeAt(i)
	c.Tenant, c.NotBefore = "others", time.Now().Add(time.Hour+time.Duration(i)*time.Second)
	return c
}
