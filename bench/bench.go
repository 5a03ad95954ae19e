package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"
)

// Config says what to run. Only URL is required.
type Config struct {
	// URL names a database of PostgreSQL. The bench works in a schema of its own
	// there, pawl_bench, and drops it in the end. Nothing else should use the
	// server meanwhile, and its fsync should be on, or the figures are of commits
	// that are not durable.
	URL string

	// Rounds is how often every scenario is run. The rounds are interleaved, so
	// that a machine that grows slower does so for all. Default 3.
	Rounds int

	// Duration is how long a scenario is measured in each round, after a warm-up
	// of a fifth of it. Default 3 s.
	Duration time.Duration

	// Large is the number of commands that are loaded before the measurement, in a schema of their own, to compare full tables with empty
	// ones; no other scenario runs then. Zero means none. [past] describes the loaded rows.
	Large int

	// Aged is after how many commands it is measured what a snapshot costs that is as old.
	// Default 20,000.
	Aged int

	// Migrated is the number of instances that are migrated while commands run. The migrating node is killed once for each 5,000 of them.
	// Defaults to 10,000.
	Migrated int

	// NATS is the URL of a server with JetStream, for the scenarios that need one,
	// which are left out otherwise. Streams are made there, whose messages last for a
	// minute.
	NATS string

	// Only selects the scenarios by name; nil selects all. Ratios need
	// the floor and the ceiling too.
	Only *regexp.Regexp

	// Progress is called with a line after each scenario. Nil means no reports.
	Progress func(line string)

	orders int // how many instances are prepared
}

// Orders that are prepared for each round. They are enough for 256 callers with
// forty each, and for four with batches of a thousand.
const defaultOrders = 10_240

func (c Config) withDefaults() (Config, error) {
	c.Rounds, c.Duration, c.orders = cmp.Or(c.Rounds, 3), cmp.Or(c.Duration, 3*time.Second), cmp.Or(c.orders, defaultOrders)
	c.Aged, c.Migrated = cmp.Or(c.Aged, 20_000), cmp.Or(c.Migrated, 10_000)
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	switch {
	case c.URL == "":
		return c, errors.New("bench: Config.URL is required")
	case c.Rounds < 0 || c.Duration < 0 || c.Large < 0 || c.Aged < 0 || c.Migrated < 0:
		return c, errors.New("bench: Config.Rounds, Config.Duration, Config.Large, Config.Aged and Config.Migrated cannot be negative")
	}
	return c, nil
}

// Run measures everything that c selects and writes the table and the goals to out. An error
// means that something failed, or that a scenario had not committed what it
// claimed to have.
func Run(ctx context.Context, c Config, out io.Writer) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	list := scenarios(manySubscribers, c.NATS != "")
	if c.Large > 0 {
		list = largeScenarios()
	}
	return run(ctx, c, list, out)
}

func run(ctx context.Context, c Config, list []*scenario, out io.Writer) (err error) {
	var results []*result
	for _, s := range list {
		if c.Only == nil || c.Only.MatchString(s.name) {
			results = append(results, &result{scenario: s})
		}
	}
	if len(results) == 0 {
		return errors.New("bench: Config.Only selects no scenario")
	}
	e, err := newEnv(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.db.close(ctx)) }()
	full := e
	if c.Large > 0 {
		if full, err = openFull(ctx, e, out); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, full.db.close(ctx)) }()
	}
	begun := time.Now()
	for round := range c.Rounds {
		for _, r := range results {
			on := e
			if r.scenario.full {
				on = full
			}
			m, err := on.round(ctx, r.scenario)
			if err != nil {
				return fmt.Errorf("bench: %s: %w", r.scenario.name, err)
			}
			r.samples = append(r.samples, m)
			c.Progress(fmt.Sprintf("round %d of %d: %-34s %8.0f/s", round+1, c.Rounds, r.scenario.name, m.rate()))
		}
	}
	return (&report{config: c, about: e.db.about, results: results, took: time.Since(begun)}).write(out)
}

func newEnv(ctx context.Context, c Config) (_ *env, err error) {
	e := &env{Config: c}
	for i := range c.orders {
		e.orders = append(e.orders, orderAt(i))
	}
	if e.flip, err = newSpecimen(flipping); err != nil {
		return nil, err
	}
	if e.note, err = newSpecimen(noting); err != nil {
		return nil, err
	}
	e.db, err = openDatabase(ctx, c.URL, benchSchema)
	return e, err
}
