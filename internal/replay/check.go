package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/replay/eventlog"
	"github.com/pawlhq/pawl/internal/replay/fold"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
)

// Verifier checks the audit chains of a tenant. *engine.Engine is one.
type Verifier interface {
	Verify(ctx context.Context, tenant string, id uuid.UUID) (inspect.Verification, error)
}

// Querier reads the database: a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Evidence is what Check looks at. Log, Database and Verifier are required.
type Evidence struct {
	Log      Log
	Database Querier
	Verifier Verifier
	Schema   string // default "pawl"
	Tenant   string // default "default"

	// Progress, if it is not nil, is called with the number of events compared.
	Progress func(events int64)
}

// Durable is what the database has, and where it is not what the fold says.
type Durable struct {
	Elapsed  time.Duration
	Cases    int64 // that exist, each with the fold's state, version and sums
	Commands int64 // each with the fold's outcome
	Head     int64 // of the log, which is how many transitions there are
	Chains   int64
	Rows     int64 // of all chains

	// Digest is the hex SHA-256 of the durable trace, written as the fold writes
	// its own: a line for each event with what became of it.
	Digest string

	Differences int64
	Examples    []string // the first of them
}

// Err is nil if nothing differs.
func (d *Durable) Err() error {
	if d.Differences == 0 {
		return nil
	}
	return fmt.Errorf("replay: what is durable differs from the fold in %d places, for example: %s", d.Differences, d.Examples[0])
}

func (d *Durable) differ(format string, args ...any) {
	d.Differences++
	if len(d.Examples) < maxExamples {
		d.Examples = append(d.Examples, fmt.Sprintf(format, args...))
	}
}

// checkPage is how many events are compared at a time.
const checkPage = 2000

// Check reads what is durable and compares it with the fold: every case, every
// command, every transition, every chain. It writes what it finds into
// report.Durable. Its error is one of the log, the database or ctx; differences
// are no error here, but report.Err has them.
func Check(ctx context.Context, report *Report, e Evidence) error {
	if e.Database == nil || e.Verifier == nil || e.Log.cases == nil {
		return errors.New("replay: Evidence needs Log, Database and Verifier")
	}
	c := checker{Evidence: e, found: &Durable{}, trace: sha256.New()}
	if c.Schema == "" {
		c.Schema = schema.Default
	}
	if c.Tenant == "" {
		c.Tenant = transitions.DefaultTenant
	}
	began := time.Now()
	totals, err := c.Log.each(func(_ eventlog.Case, want fold.Case) error {
		c.page, c.events = append(c.page, want), c.events+len(want.Outcomes)
		if c.events < checkPage {
			return nil
		}
		return c.turn(ctx)
	})
	for _, step := range []func(context.Context) error{c.turn, c.totals, c.chains} {
		if err == nil {
			err = step(ctx)
		}
	}
	c.found.Elapsed, c.found.Digest = time.Since(began), hex.EncodeToString(c.trace.Sum(nil))
	if err == nil && c.found.Digest != totals.Digest {
		c.found.differ("the durable trace has the digest %s; the fold's has %s", c.found.Digest, totals.Digest)
	}
	report.Durable = c.found
	return err
}

// checker gathers cases into pages and compares them.
type checker struct {
	Evidence
	found    *Durable
	page     []fold.Case
	events   int // of the page
	compared int64

	accepted int64 // by the fold
	trace    hash.Hash
	line     []byte
}

// turn compares the page and begins a new one.
func (c *checker) turn(ctx context.Context) error {
	if len(c.page) == 0 {
		return nil
	}
	if err := c.cases(ctx); err != nil {
		return err
	}
	if err := c.commands(ctx); err != nil {
		return err
	}
	c.compared += int64(c.events)
	c.page, c.events = c.page[:0], 0
	if c.Progress != nil {
		c.Progress(c.compared)
	}
	return nil
}

func (c *checker) id(caseID string) uuid.UUID {
	return transitions.InstanceID(c.Tenant, "fine", caseID)
}

// standing is what an instance says of its case.
type standing struct {
	state   fold.State
	version int64
	fine    fines.Fine
}

const casesSQL = `SELECT business_key, state, version, data::text FROM pawl.instance WHERE tenant = $1 AND id = ANY($2)`

// cases compares the page's instances.
func (c *checker) cases(ctx context.Context) error {
	ids := make([]string, len(c.page)) // as text, which every mode of the driver can send
	for i, want := range c.page {
		ids[i] = c.id(want.ID).String()
	}
	rows, err := c.Database.Query(ctx, schema.In(c.Schema, casesSQL), c.Tenant, ids)
	if err != nil {
		return fmt.Errorf("replay: read instances: %w", err)
	}
	found := make(map[string]standing, len(c.page))
	var (
		key, state, data string
		version          int64
	)
	_, err = pgx.ForEachRow(rows, []any{&key, &state, &version, &data}, func() error {
		s := standing{state: fold.State(state), version: version}
		found[key] = s
		err := json.Unmarshal([]byte(data), &s.fine)
		found[key] = s
		return err
	})
	if err != nil {
		return fmt.Errorf("replay: read instances: %w", err)
	}
	for _, want := range c.page {
		c.compareCase(&want, found)
	}
	return nil
}

func (c *checker) compareCase(want *fold.Case, found map[string]standing) {
	c.accepted += want.Version
	got, exists := found[want.ID]
	if exists {
		c.found.Cases++
	}
	if exists != (want.Version > 0) {
		c.found.differ("case %s exists: %v; the fold accepted %d of its events", want.ID, exists, want.Version)
		return
	}
	if got.state != want.State || got.version != want.Version {
		c.found.differ("case %s is %q at version %d; the fold says %q at version %d", want.ID, got.state, got.version, want.State, want.Version)
	}
	sums := [4]int64{got.fine.Amount, got.fine.Raised, got.fine.Expenses, got.fine.Paid}
	if wanted := [4]int64{want.Amount, want.Raised, want.Expenses, want.Paid}; sums != wanted {
		c.found.differ("case %s has the sums %v; the fold says %v", want.ID, sums, wanted)
	}
}
