package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/transitions"
)

// submittingAt is a scenario of callers who are spread over several nodes.
func submittingAt(name, floor string, nodes, n int, of commander) *scenario {
	return &scenario{name: name, floor: floor, open: func(ctx context.Context, e *env) (list []caller, err error) {
		var engines []*engine.Engine
		for range nodes {
			eng, err := e.engine(ctx, engine.Config{}, false)
			if err != nil {
				return nil, err
			}
			engines = append(engines, eng)
		}
		for i := range n {
			list = append(list, submitter(engines[i%nodes], of(e, i, n), false))
		}
		return list, nil
	}}
}

// heldTenant has a log whose head somebody has.
const heldTenant = "held"

// patient commands wait for a lock for longer than a scenario takes.
const patient = time.Hour

// holdLog makes the tenant's log, and takes its head until the round ends.
func (e *env) holdLog(ctx context.Context, eng *engine.Engine) error {
	first := placeAt(0)
	first.Tenant = heldTenant
	if r, err := eng.Submit(ctx, first); err != nil || r.Err() != nil {
		return errors.Join(err, r.Err())
	}
	conn, err := e.db.connectAs(ctx, adminName)
	if err != nil {
		return err
	}
	e.later(func() error { return conn.Close(context.Background()) })
	if _, err = conn.Exec(ctx, "BEGIN"); err == nil {
		_, err = conn.Exec(ctx, e.db.in("SELECT FROM {pawl}.log WHERE tenant = $1 FOR UPDATE"), heldTenant)
	}
	return err
}

// besideAHeldLog is a scenario of callers who share a node with a tenant whose log is held, and of whose
// commands so many wait.
func besideAHeldLog(name, floor string, n, waiting int) *scenario {
	return &scenario{name: name, floor: floor, open: func(ctx context.Context, e *env) ([]caller, error) {
		eng, err := e.engine(ctx, engine.Config{Pipeline: engine.PipelineConfig{QueueSize: 4 * waiting, QueueBytes: 1 << 30, LockWait: patient}},
			false)
		if err != nil {
			return nil, err
		}
		if err := e.holdLog(ctx, eng); err != nil {
			return nil, err
		}
		var commands []transitions.Command
		for i := range waiting {
			c := placeAt(i + 1)
			c.Tenant = heldTenant
			commands = append(commands, c)
		}
		impatient, leave := context.WithCancel(ctx)
		left := make(chan struct{})
		go func() {
			defer close(left)
			eng.SubmitMany(impatient, commands)
		}()
		e.later(func() error { leave(); <-left; return nil })
		err = poll(ctx, 10*time.Millisecond, time.Minute, "the commands of the held tenant do not wait",
			func() (bool, error) { return eng.Admin().Stats().Aside >= int64(waiting), nil })
		return submitters(e, eng, n, flips), err
	}}
}

// impatient is a scenario of callers who submit commands of so many bytes to a log that is held, each of whom leaves after a
// tenth of a second and comes again.
func impatient(name string, n, size int) *scenario {
	return &scenario{name: name, apart: true, run: func(ctx context.Context, e *env) (*sample, error) {
		eng, err := e.engine(ctx, engine.Config{Workflows: bulkyOnly, Pipeline: engine.PipelineConfig{LockWait: patient}}, false)
		if err != nil {
			return nil, err
		}
		if err := e.holdLog(ctx, eng); err != nil {
			return nil, err
		}
		list := make([]caller, n)
		for i := range list {
			k := 0
			list[i] = func(ctx context.Context) (int, error) {
				k++
				bounded, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
				_, err := eng.Submit(bounded, fillBulky(heldTenant, fmt.Sprintf("%d-%d", i, k), size))
				if err == nil {
					return 0, errors.New("a command of the held log was done")
				}
				backoff.Sleep(ctx, time.Millisecond) // what finds no room is refused at once
				return 1, nil
			}
		}
		return e.driveHeap(ctx, list)
	}}
}
