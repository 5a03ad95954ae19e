// Package replay plays a log of traffic fines through Pawl with every event
// submitted twice, by two callers at the same time, and then compares what is
// durable with an independent fold of the same log.
//
// It shows the promise on a real case: one durable effect per event, the same
// answer for both callers, one audit row and one position without a gap per
// transition, and chains that verify. Both sides are streams, so a log of any
// length takes the memory of a few thousand events.
package replay

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/pawlhq/pawl/app/progress"
	"github.com/pawlhq/pawl/examples/fines/replay/eventlog"
	"github.com/pawlhq/pawl/examples/fines/replay/fold"
	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Target takes commands and answers each, in order. Commands of one instance
// must be done in their order. *engine.Engine is one, and [HTTP] makes one of a
// server.
type Target interface {
	SubmitMany(ctx context.Context, cs []transitions.Command) []transitions.Reply
}

// Config says what is played, against what, and where that is kept. Log and
// Targets are required, and for [Check] Database and Verifier.
type Config struct {
	Log Log

	// Targets are spread over the callers of a pair: with two of them each event
	// goes to both at the same time.
	Targets []Target

	Database Querier
	Verifier Verifier
	Schema   string // default "pawl"

	// Tenant is whose fines they are; it must hold nothing else. Default "default".
	Tenant string

	// Batch is how many events a caller submits at once, about: cases are not
	// torn. Default 500.
	Batch int

	// Patience is how long a caller tries the same events again while nothing of
	// them is answered. Default 5 minutes.
	Patience time.Duration

	// Progress, if it is not nil, is called with the number of events that both
	// callers have an answer for, and then of those compared. It is never called
	// twice at the same time.
	Progress func(events int64)
}

func (c Config) withDefaults() Config {
	c.Tenant, c.Batch, c.Patience = cmp.Or(c.Tenant, transitions.DefaultTenant), cmp.Or(c.Batch, 500), cmp.Or(c.Patience, 5*time.Minute)
	if c.Progress == nil {
		c.Progress = func(int64) {}
	}
	return c
}

// Play runs and checks, and tells out how far it is. The report is there unless
// nothing was replayed. The error says what failed, or what is not as promised.
func Play(ctx context.Context, c Config, out io.Writer) (report *Report, err error) {
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"replay", func() (err error) { report, err = Run(ctx, c); return err }},
		{"compare", func() error { return Check(ctx, c, report) }},
	} {
		meter := progress.New(out, step.name, "events", int64(c.Log.limit))
		c.Progress = meter.Set
		err := step.do()
		meter.Stop()
		if err != nil {
			return report, err
		}
	}
	return report, report.Err()
}

// pairs is how many pairs of callers there are.
const pairs = 16

// Run plays the log. Cases are dealt to pairs of callers, and both callers of a pair submit the same cases, whole and in order, at the same
// moment. Retryable commands are submitted again with the same key, so the run survives outages of its targets.
//
// The report has the callers' answers; [Check] adds the stored rows. Run returns an error of the log, or the end of ctx or of Patience; the
// report then has the progress. Wrong answers are in the report.
func Run(ctx context.Context, c Config) (*Report, error) {
	c = c.withDefaults()
	report := &Report{Log: c.Log.String(), Refused: map[string]int64{}, Malformed: map[string]int64{}}
	began := time.Now()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	batches := make(chan []fold.Case)
	var work sync.WaitGroup
	for range pairs {
		work.Go(func() {
			for b := range batches {
				if err := c.play(ctx, b, report); err != nil {
					stop(err) // the other pairs end with what they have under way
				}
			}
		})
	}
	err := c.deal(ctx, batches)
	close(batches)
	work.Wait()
	report.Elapsed = time.Since(began)
	// The cause of the end is reported, not the operation that it interrupted.
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return report, err
}

// deal cuts the log into batches of whole cases.
func (c *Config) deal(ctx context.Context, batches chan<- []fold.Case) error {
	_, err := c.pages(c.Batch, func(page []fold.Case) error {
		select {
		case batches <- page:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	return err
}

// pages calls do with whole cases of so many events together, about. It returns the
// fold's digest.
func (c *Config) pages(size int, do func([]fold.Case) error) (digest string, err error) {
	var page []fold.Case
	events := 0
	digest, err = c.Log.each(func(one fold.Case) error {
		page, events = append(page, one), events+len(one.Rows)
		if events < size {
			return nil
		}
		full := page
		page, events = nil, 0
		return do(full)
	})
	if err == nil && len(page) > 0 {
		err = do(page)
	}
	return digest, err
}

// play has both callers of a pair submit a batch at the same time, and counts
// their answers.
func (c *Config) play(ctx context.Context, cases []fold.Case, report *Report) error {
	var commands []transitions.Command
	for _, one := range cases {
		for i, row := range one.Rows {
			command, err := eventlog.Command(row, i+1)
			if err != nil {
				return err
			}
			command.Tenant = c.Tenant
			commands = append(commands, command)
		}
	}
	var callers [2]caller
	var both sync.WaitGroup
	for i := range callers {
		both.Go(func() { callers[i].submit(ctx, c.Targets[i%len(c.Targets)], commands, c.Patience) })
	}
	both.Wait()
	if err := cmp.Or(callers[0].err, callers[1].err); err != nil {
		return err
	}
	report.add(cases, &callers, c.Progress)
	return nil
}

// caller is one of the two who submit the same batch.
type caller struct {
	replies []transitions.Reply // the last answer to each command
	again   int                 // commands that were submitted again
	err     error               // why it gave up
}

// submit asks until every command has an answer that lasts. A defect does: it
// would come back.
func (c *caller) submit(ctx context.Context, to Target, cs []transitions.Command, patience time.Duration) {
	c.replies = make([]transitions.Reply, len(cs))
	open := make([]int, len(cs))
	for i := range open {
		open[i] = i
	}
	retry := workflow.Retry{First: 10 * time.Millisecond, Max: 2 * time.Second}
	failures, since := 0, time.Now()
	for {
		left := c.ask(ctx, to, cs, open)
		switch {
		case c.err != nil || len(left) == 0:
			return
		case len(left) < len(open):
			failures, since = 0, time.Now()
		case time.Since(since) > patience:
			c.err = fmt.Errorf("replay: no answer to %d events for %v: %w", len(left), patience, c.replies[left[0]].Err)
			return
		}
		open, c.again = left, c.again+len(left)
		failures++
		if !backoff.Wait(ctx, retry, failures) {
			c.err = context.Cause(ctx)
			return
		}
	}
}

// ask submits those of the commands that are open, and returns those that still are.
func (c *caller) ask(ctx context.Context, to Target, cs []transitions.Command, open []int) (left []int) {
	asked := make([]transitions.Command, len(open))
	for n, i := range open {
		asked[n] = cs[i]
	}
	got := to.SubmitMany(ctx, asked)
	if len(got) != len(asked) {
		c.err = fmt.Errorf("replay: the target gave %d answers to %d events", len(got), len(asked))
		return nil
	}
	for n, i := range open {
		c.replies[i] = got[n]
		if code := workflow.CodeOf(got[n].Err); got[n].Err != nil && code != workflow.Internal && code.Info().Retry {
			left = append(left, i)
		}
	}
	return left
}
