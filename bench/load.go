package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/workflow"
)

// LoadConfig says with how much to fill new tables. Only URL is required by
// [Load].
type LoadConfig struct {
	// URL names a database of PostgreSQL.
	URL string

	// Schema is the schema that is created for the tables; it must not exist.
	// Default "pawl_loaded".
	Schema string

	// Commands is how many finished commands there are, each with its audit row and
	// its event. Default 10,000,000.
	Commands int

	// Instances is how many instances they are about. Default a tenth of Commands.
	Instances int

	// Tenants is how many tenants share them; half of it is that of the tenant
	// "default". Default 4.
	Tenants int

	// Due is how many of the commands have expired answers, the oldest ones. The
	// others' expire evenly over a day, beginning in two hours. Default 0.
	Due int

	// Progress is told how far the load is, every few seconds. Nil means nobody.
	Progress func(line string)
}

func (c LoadConfig) withDefaults() (LoadConfig, error) {
	setDefault(&c.Schema, "pawl_loaded")
	setDefault(&c.Commands, 10_000_000)
	setDefault(&c.Instances, max(1, c.Commands/10))
	setDefault(&c.Tenants, 4)
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	switch {
	case c.URL == "":
		return c, errors.New("bench: LoadConfig.URL is required")
	case c.Commands < 1 || c.Instances < 1 || c.Tenants < 1 || c.Due < 0:
		return c, errors.New("bench: LoadConfig.Commands, Instances and Tenants must be positive, and Due not negative")
	case c.Instances > c.Commands || c.Due > c.Commands:
		return c, errors.New("bench: LoadConfig.Instances and Due cannot be more than Commands: every instance has one at least")
	}
	return c, schema.CheckName(c.Schema)
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Load creates the tables and fills them with what an engine would have written,
// row by row: fingerprints, answers, chains of hashes, positions and heads are
// right, so that an engine goes on from there and audit chains verify. It writes
// what it did to out.
//
// The rows are decided in this program, by the engine's rules, and copied in
// transactions of about 10,000 commands, without indexes, which are built in the
// end, about as dense as if they had grown. Then all is vacuumed and analyzed. If
// it fails, the schema is dropped.
func Load(ctx context.Context, c LoadConfig, out io.Writer) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	d, err := connectDatabase(ctx, c.URL, c.Schema)
	if err != nil {
		return err
	}
	l := &loader{config: c, db: d, past: newPast(c, time.Now())}
	err = l.run(ctx)
	if err == nil {
		err = l.report(ctx, out)
	}
	if err != nil && l.created {
		return errors.Join(err, d.close(ctx))
	}
	return errors.Join(err, d.admin.Close(ctx))
}

// loader fills one schema.
type loader struct {
	config  LoadConfig
	db      *database
	past    *past
	created bool
	rebuild []string // the indexes that were dropped
	steps   []loadStep
	copied  atomic.Int64 // commands
}

// loadStep is a part of the work, for the report.
type loadStep struct {
	name string
	took time.Duration
}

func (l *loader) run(ctx context.Context) error {
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"create the tables", l.create},
		{"copy the rows", l.copy},
		{"build the indexes", l.index},
		{"vacuum and analyze", l.vacuum},
	} {
		begun := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("bench: %s: %w", step.name, err)
		}
		l.steps = append(l.steps, loadStep{step.name, time.Since(begun)})
		l.config.Progress(fmt.Sprintf("%s: %v", step.name, time.Since(begun).Round(100*time.Millisecond)))
	}
	return nil
}

// loadedWorkflows are those that loaded instances are of.
var loadedWorkflows = []workflow.Source{definition, parcels}

func (l *loader) create(ctx context.Context) error {
	if _, err := l.db.admin.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{l.config.Schema}.Sanitize()); err != nil {
		return err
	}
	l.created = true
	pool, err := l.db.pool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := schema.Migrate(ctx, pool, l.config.Schema); err != nil {
		return err
	}
	if _, err := l.db.admin.Exec(ctx, l.db.in("SELECT pawl.make_partitions($1)"), l.past.at(0)); err != nil {
		return err
	}
	// An engine that starts writes down its definitions.
	eng, err := engine.New(engine.Config{Pool: pool, Schema: l.config.Schema, Workflows: loadedWorkflows,
		Log: slog.New(slog.DiscardHandler), Retention: engine.RetentionConfig{Off: true}})
	if err != nil {
		return err
	}
	defer eng.Stop(context.WithoutCancel(ctx))
	return eng.Start(ctx)
}

// copy decides and copies the cohorts, several at once, each in a transaction of
// its own, and then writes the heads of the logs.
func (l *loader) copy(ctx context.Context) error {
	if err := l.dropIndexes(ctx); err != nil {
		return err
	}
	deciders, err := newDeciders()
	if err != nil {
		return err
	}
	first, heads := l.positions()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var work sync.WaitGroup
	for range min(runtime.NumCPU(), 4) {
		work.Go(func() {
			if err := l.copyCohorts(ctx, deciders, first, &next); err != nil {
				cancel(err)
			}
		})
	}
	stopTelling := l.tell()
	work.Wait()
	stopTelling()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	for name, head := range heads {
		if _, err := l.db.admin.Exec(ctx, l.db.in("INSERT INTO pawl.log (tenant, head) VALUES ($1, $2)"), name, head); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) copyCohorts(ctx context.Context, by deciders, first []int64, next *atomic.Int64) (err error) {
	conn, err := l.db.connectAs(ctx, poolName)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	for {
		n := int(next.Add(1)) - 1
		if n >= l.past.cohorts() {
			return nil
		}
		rows, err := by.cohort(l.past, n, first[n])
		if err != nil {
			return err
		}
		if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return rows.copy(ctx, tx, l.config.Schema) }); err != nil {
			return err
		}
		l.copied.Add(int64(len(rows.steps)))
	}
}

// positions are where in its tenant's log each cohort begins, and where the logs
// end.
func (l *loader) positions() (first []int64, heads map[string]int64) {
	heads = map[string]int64{}
	for n := range l.past.cohorts() {
		from, end := l.past.cohortOf(n)
		whose := l.past.tenantOf(n)
		first = append(first, heads[whose]+1)
		heads[whose] += int64(l.past.before(end) - l.past.before(from))
	}
	return first, heads
}

// tell tells how far the copying is, until it is stopped.
func (l *loader) tell() (stop func()) {
	begun, done := time.Now(), make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				n := float64(l.copied.Load())
				l.config.Progress(fmt.Sprintf("%s of %s commands, %s/s", whole(n), whole(float64(l.past.commands)), whole(n/time.Since(begun).Seconds())))
			}
		}
	})
	return func() {
		close(done)
		work.Wait()
	}
}

func (l *loader) report(ctx context.Context, out io.Writer) error {
	sizes, err := l.db.sizes(ctx)
	if err != nil {
		return err
	}
	var b strings.Builder
	var all time.Duration
	for _, s := range l.steps {
		all += s.took
	}
	fmt.Fprintf(&b, "Loaded %s commands on %s instances of %s, %s due, into schema %s in %v (%s commands/s).\n",
		whole(float64(l.past.commands)), whole(float64(l.past.instances)), counted(len(l.past.tenants), "tenant"), whole(float64(l.past.due)),
		l.config.Schema, all.Round(100*time.Millisecond), whole(float64(l.past.commands)/all.Seconds()))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\trows\ttable MB\tindexes MB\tB/row\t")
	for _, s := range sizes {
		fmt.Fprintf(w, "%-10s\t%s\t%s\t%s\t%s\t\n", s.Table, whole(s.Rows), whole(s.Heap/1e6), whole(s.Indexes/1e6), whole((s.Heap+s.Indexes)/max(s.Rows, 1)))
	}
	_ = w.Flush() // into memory
	_, err = io.WriteString(out, b.String())
	return err
}
