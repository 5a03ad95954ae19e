package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// engine starts an engine as a program would; purging says whether it does what
// is due, too. end stops it and closes its connections.
func (e *env) engine(ctx context.Context, c engine.Config, purging bool) (_ *engine.Engine, end func(), err error) {
	pool, err := e.db.pool(ctx)
	if err != nil {
		return nil, nil, err
	}
	c.Pool, c.Schema, c.Workflows, c.Pipeline = pool, e.db.schema, []workflow.Source{definition}, e.pipeline
	c.Retention.Off = !purging            // what is purged, and when, is for the scenario to say
	c.Log = slog.New(slog.DiscardHandler) // what goes wrong is an error of the round
	eng, err := engine.New(c)
	if err == nil {
		err = eng.Start(ctx)
	}
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return eng, func() {
		eng.Stop(context.Background())
		pool.Close()
	}, nil
}

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

// commander gives a caller its next command. A caller has a number of its own,
// from 2 on: 0 and 1 prepared the tables.
type commander func(e *env, number, callers int) func() transitions.Command

// firstCaller is the number of the first caller.
const firstCaller = 2

// flips are transitions on instances that no other caller touches.
func flips(e *env, number, callers int) func() transitions.Command {
	own := share(e.orders, number-firstCaller, callers)
	n := 0
	return func() transitions.Command {
		c := change(flipping, &own[n%len(own)], commandKey(number, n))
		n++
		return c
	}
}

// notes are transitions that all go to one instance.
func notes(e *env, number, _ int) func() transitions.Command {
	n := 0
	return func() transitions.Command {
		n++
		return change(noting, &e.orders[0], commandKey(number, n))
	}
}

// places are creations.
func places(e *env, number, _ int) func() transitions.Command {
	n := number * 10_000_000
	return func() transitions.Command {
		n++
		return placeAt(n)
	}
}

// replays ask again for the flips that the preparation has made.
func replays(e *env, number, callers int) func() transitions.Command {
	i, end := (number-firstCaller)*len(e.orders)/callers, (number-firstCaller+1)*len(e.orders)/callers
	begin := i
	return func() transitions.Command {
		c := change(flipping, &e.orders[i], commandKey(1, i))
		if i++; i == end {
			i = begin
		}
		return c
	}
}

// submitting is a scenario of callers that submit one command after the other.
func submitting(name, floor string, callers int, of commander, isReplay bool) *scenario {
	return engineScenario(name, floor, callers, isReplay, func(e *env, eng *engine.Engine, number int) caller {
		next := of(e, number, callers)
		return func(ctx context.Context) (int, error) {
			r, err := eng.Submit(ctx, next())
			return 1, check(r, err, isReplay)
		}
	})
}

// manyBatch is how many commands a caller of SubmitMany hands over at once.
const manyBatch = 1000

// submittingMany is a scenario of callers that submit batches.
func submittingMany(name string, callers int, of commander, isReplay bool) *scenario {
	return engineScenario(name, floorMany, callers, isReplay, func(e *env, eng *engine.Engine, number int) caller {
		next := of(e, number, callers)
		batch := make([]transitions.Command, manyBatch)
		return func(ctx context.Context) (int, error) {
			for i := range batch {
				batch[i] = next()
			}
			for _, reply := range eng.SubmitMany(ctx, batch) {
				if err := check(reply.Receipt, reply.Err, isReplay); err != nil {
					return 0, err
				}
			}
			return len(batch), nil
		}
	})
}

func engineScenario(name, floor string, callers int, isReplay bool, of func(e *env, eng *engine.Engine, number int) caller) *scenario {
	return &scenario{name: name, section: theEngine, floor: floor, replays: isReplay,
		run: closedLoop(func(ctx context.Context, e *env) ([]caller, func(), error) {
			eng, end, err := e.engine(ctx, engine.Config{}, false)
			if err != nil {
				return nil, nil, err
			}
			list := make([]caller, callers)
			for i := range list {
				list[i] = of(e, eng, firstCaller+i)
			}
			return list, end, nil
		})}
}
