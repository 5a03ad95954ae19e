package replay

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/examples/fines/replay/fold"
	"github.com/pawlhq/pawl/inspect"
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

// Durable is what the database has, and where it is not what the fold says.
type Durable struct {
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

func (d *Durable) differ(format string, args ...any) {
	d.Differences++
	if len(d.Examples) < maxExamples {
		d.Examples = append(d.Examples, fmt.Sprintf(format, args...))
	}
}

// checkPage is how many events are compared at a time.
const checkPage = 2000

// Check compares the stored rows with the fold: every case, command, transition and chain. It writes the result into report.Durable. It
// returns an error of the log, the database or ctx; differences are reported by report.Err.
func Check(ctx context.Context, c Config, report *Report) error {
	k := checker{Config: c.withDefaults(), found: &Durable{}, trace: sha256.New()}
	k.Schema = cmp.Or(k.Schema, schema.Default)
	report.Durable = k.found
	digest, err := k.pages(checkPage, func(page []fold.Case) error {
		if err := k.cases(ctx, page); err != nil {
			return err
		}
		if err := k.commands(ctx, page); err != nil {
			return err
		}
		for _, want := range page {
			k.compared += int64(len(want.Outcomes))
		}
		k.Progress(k.compared)
		return nil
	})
	if err == nil {
		if k.found.Digest = hex.EncodeToString(k.trace.Sum(nil)); k.found.Digest != digest {
			k.found.differ("the durable trace has the digest %s; the fold's has %s", k.found.Digest, digest)
		}
		err = k.totals(ctx)
	}
	if err == nil {
		err = k.chains(ctx)
	}
	return err
}

// checker compares page by page.
type checker struct {
	Config
	found    *Durable
	compared int64

	accepted int64 // by the fold
	trace    hash.Hash
	line     []byte
}

func (c *checker) id(caseID string) uuid.UUID {
	return transitions.InstanceID(c.Tenant, "fine", caseID)
}

// standing is the state of a case in its instance; zero if there is no instance.
type standing struct {
	State   fold.State
	Version int64
	Data    string
}

const casesSQL = `SELECT coalesce(i.state, ''), coalesce(i.version, 0), coalesce(i.data::text, '{}')
FROM unnest($2::text[]) WITH ORDINALITY AS u(id, n)
LEFT JOIN LATERAL (SELECT state, version, data FROM {pawl}.instance WHERE tenant = $1 AND id = u.id::uuid LIMIT 1) i ON true ORDER BY u.n`

// cases compares the page's instances.
func (c *checker) cases(ctx context.Context, page []fold.Case) error {
	ids := make([]string, len(page)) // as text, which every mode of the driver can send
	for i, want := range page {
		ids[i] = c.id(want.ID).String()
	}
	found, err := read[standing](ctx, c, casesSQL, ids)
	if err != nil {
		return err
	}
	for i, want := range page {
		got := found[i]
		c.accepted += want.Version
		if got.Version > 0 {
			c.found.Cases++
		}
		if got.State != want.State || got.Version != want.Version {
			c.found.differ("case %s is %q at version %d; the fold says %q at version %d", want.ID, got.State, got.Version, want.State, want.Version)
		}
		var fine fines.Fine
		if err := json.Unmarshal([]byte(got.Data), &fine); err != nil {
			return fmt.Errorf("replay: the data of case %s: %w", want.ID, err)
		}
		sums := [4]int64{fine.Amount, fine.Raised, fine.Expenses, fine.Paid}
		if wanted := [4]int64{want.Amount, want.Raised, want.Expenses, want.Paid}; sums != wanted {
			c.found.differ("case %s has the sums %v; the fold says %v", want.ID, sums, wanted)
		}
	}
	return nil
}

// read reads a row for each of what is asked for, in that order.
func read[T any](ctx context.Context, c *checker, sql string, asked ...any) ([]T, error) {
	rows, err := c.Database.Query(ctx, schema.In(c.Schema, sql), append([]any{c.Tenant}, asked...)...)
	if err != nil {
		return nil, fmt.Errorf("replay: read what is durable: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	if err != nil {
		return nil, fmt.Errorf("replay: read what is durable: %w", err)
	}
	return found, nil
}
