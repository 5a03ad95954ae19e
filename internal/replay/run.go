package replay

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/replay/eventlog"
	"github.com/pawlhq/pawl/internal/replay/fold"
	"github.com/pawlhq/pawl/transitions"
)

// Config says what is played, and against what. Only Log and Targets are
// required.
type Config struct {
	Log Log

	// Targets are spread over the callers of a pair: with two of them each event
	// goes to both at the same time.
	Targets []Target

	// Tenant is whose fines they are. For Check to agree, the tenant must hold
	// nothing else. Default: the target's own.
	Tenant string

	// Pairs is how many pairs of callers there are. Default 16.
	Pairs int

	// Batch is how many events a caller submits at once, about: cases are not
	// torn. Default 500.
	Batch int

	// Patience is how long a caller tries the same events again while nothing of
	// them is answered. Default 5 minutes.
	Patience time.Duration

	// Progress, if it is not nil, is called with the number of events that both
	// callers have an answer for. It is never called twice at the same time.
	Progress func(events int64)
}

// Run plays the log. Cases are dealt to pairs of callers, and both callers of a
// pair submit the same cases, whole and in order, at the same moment. What
// cannot be answered now is submitted again with the same key, so the run
// survives the outages of its targets.
//
// The report has what the callers saw; [Check] adds what is durable. An error is
// one of the log, the end of ctx or of Patience, or a target that takes no
// commands of fines; the report then tells how far it came. Answers that are
// wrong are in the report, and are no error here.
func Run(ctx context.Context, c Config) (*Report, error) {
	if len(c.Targets) == 0 {
		return nil, errors.New("replay: Config.Targets is empty")
	}
	if c.Log.cases == nil {
		return nil, errors.New("replay: Config.Log is empty")
	}
	c.Pairs, c.Batch, c.Patience = cmp.Or(c.Pairs, 16), cmp.Or(c.Batch, 500), cmp.Or(c.Patience, 5*time.Minute)

	report := newReport(c.Log)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	batches := make(chan *batch)
	var pairs sync.WaitGroup
	for range c.Pairs {
		pairs.Go(func() {
			for b := range batches {
				if err := c.play(ctx, b, report); err != nil {
					stop(err) // the other pairs end with what they have under way
				}
			}
		})
	}
	err := c.deal(ctx, batches)
	close(batches)
	pairs.Wait()
	report.finish()
	// What stopped the run is the reason, not what it was stopped at.
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return report, err
}

// deal cuts the log into batches of whole cases.
func (c *Config) deal(ctx context.Context, batches chan<- *batch) error {
	b := &batch{}
	send := func() error {
		if len(b.commands) == 0 {
			return nil
		}
		select {
		case batches <- b:
			b = &batch{}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	_, err := c.Log.each(func(found eventlog.Case, want fold.Case) error {
		if err := b.add(found, want, c.Tenant); err != nil {
			return err
		}
		if len(b.commands) < c.Batch {
			return nil
		}
		return send()
	})
	if err != nil {
		return err
	}
	return send()
}

// batch is what one pair of callers submits at once.
type batch struct {
	commands []transitions.Command
	want     []fold.Outcome // of each command
	version  []int64        // that each command should make; 0 for none
	cases    int
}

func (b *batch) add(found eventlog.Case, want fold.Case, tenant string) error {
	version := int64(0)
	for i, e := range found.Events {
		cmd, err := e.Command()
		if err != nil {
			return err
		}
		cmd.Tenant = tenant
		b.commands = append(b.commands, cmd)
		b.want = append(b.want, want.Outcomes[i])
		made := int64(0)
		if want.Outcomes[i].Reason == "" {
			version++
			made = version
		}
		b.version = append(b.version, made)
	}
	b.cases++
	return nil
}

// play has both callers of a pair submit a batch at the same time, and counts
// their answers.
func (c *Config) play(ctx context.Context, b *batch, report *Report) error {
	var callers [2]caller
	var both sync.WaitGroup
	ready := make(chan struct{})
	for i := range callers {
		callers[i] = caller{target: c.Targets[i%len(c.Targets)], patience: c.Patience}
		both.Go(func() {
			<-ready
			callers[i].submit(ctx, b.commands)
		})
	}
	close(ready)
	both.Wait()
	if err := cmp.Or(callers[0].err, callers[1].err); err != nil {
		return err
	}
	report.add(b, &callers, c.Progress)
	return nil
}
