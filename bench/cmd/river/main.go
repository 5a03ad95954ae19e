// Command river measures Pawl's SubmitMany and River's InsertManyFast with no-op workers, alternately, on one private PostgreSQL with
// durable settings. Run it with make bench-river.
//
// The two do different work: River's job is a row that is inserted, fetched and marked as completed; Pawl's command is an idempotent state
// change with its audit row, its event and a replayable answer. Both are the complete work of a program per unit.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl/bench"
	"github.com/pawlhq/pawl/internal/localpg"
)

const (
	rounds  = 3
	callers = 4
	batch   = 1000
	batches = 12   // of each caller, in a round of River's
	workers = 1000 // of River
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	server, err := localpg.Start(ctx, localpg.Options{Ephemeral: true, Settings: map[string]string{"fsync": "on"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	pool, err := pgxpool.New(ctx, server.URL())
	if err != nil {
		return err
	}
	defer pool.Close()
	var ratios []float64
	for range rounds {
		theirs, inserted, err := riverRound(ctx, pool)
		if err != nil {
			return fmt.Errorf("river: %w", err)
		}
		ours, err := pawlRound(ctx, server.URL())
		if err != nil {
			return fmt.Errorf("pawl: %w", err)
		}
		ratios = append(ratios, ours/theirs)
		fmt.Printf("River: InsertManyFast %6.0f/s, to the end of all jobs %6.0f/s; Pawl: SubmitMany %6.0f/s, %.2f x\n",
			inserted, theirs, ours, ours/theirs)
	}
	slices.Sort(ratios)
	fmt.Printf("median: %.2f x (goal 2)\n", ratios[len(ratios)/2])
	return nil
}

var rate = regexp.MustCompile(`SubmitMany: 4 callers, 1,000 each +([\d,]+)`)

// pawlRound returns how many transitions a second SubmitMany commits.
func pawlRound(ctx context.Context, url string) (float64, error) {
	var out bytes.Buffer
	c := bench.Config{URL: url, Rounds: 1, Only: regexp.MustCompile("^SubmitMany: 4 callers, 1,000 each$")}
	if err := bench.Run(ctx, c, &out); err != nil {
		return 0, err
	}
	found := rate.FindStringSubmatch(out.String())
	if found == nil {
		return 0, fmt.Errorf("no rate in:\n%s", out.String())
	}
	return strconv.ParseFloat(strings.ReplaceAll(found[1], ",", ""), 64)
}

// flip has as many bytes as the payload and the data of a transition of the bench.
type flip struct {
	Order string `json:"order"`
	Note  string `json:"note"`
}

func (flip) Kind() string { return "flip" }

type nothing struct{ river.WorkerDefaults[flip] }

func (nothing) Work(context.Context, *river.Job[flip]) error { return nil }

// riverRound returns how many jobs a second are completed while they are inserted and after, and how many are inserted.
func riverRound(ctx context.Context, pool *pgxpool.Pool) (completed, inserted float64, err error) {
	client, err := newRiver(ctx, pool)
	if err != nil {
		return 0, 0, err
	}
	if err := client.Start(ctx); err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, client.Stop(context.WithoutCancel(ctx))) }()
	begun := time.Now()
	if err := insertAll(ctx, client); err != nil {
		return 0, 0, err
	}
	insertion := time.Since(begun)
	if err := allCompleted(ctx, pool); err != nil {
		return 0, 0, err
	}
	const all = callers * batches * batch
	return all / time.Since(begun).Seconds(), all / insertion.Seconds(), nil
}

// newRiver is a client on empty tables.
func newRiver(ctx context.Context, pool *pgxpool.Pool) (*river.Client[pgx.Tx], error) {
	driver := riverpgxv5.New(pool)
	quiet := slog.New(slog.DiscardHandler)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, "TRUNCATE river_job"); err != nil {
		return nil, err
	}
	registry := river.NewWorkers()
	river.AddWorker(registry, nothing{})
	return river.NewClient(driver, &river.Config{Logger: quiet, Workers: registry, FetchCooldown: river.FetchCooldownMin,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}}})
}

func insertAll(ctx context.Context, client *river.Client[pgx.Tx]) error {
	group, ctx := errgroup.WithContext(ctx)
	for caller := range callers {
		group.Go(func() error {
			for b := range batches {
				list := make([]river.InsertManyParams, batch)
				for i := range list {
					order := fmt.Sprintf("customer-%d:cart-%d", caller, b*batch+i)
					list[i].Args = flip{order, strings.Repeat("on hold since the address is not known ", 3)}
				}
				if _, err := client.InsertManyFast(ctx, list); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// allCompleted returns when no job is left, to twenty milliseconds.
func allCompleted(ctx context.Context, pool *pgxpool.Pool) error {
	for {
		var left bool
		err := pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM river_job WHERE state <> 'completed')").Scan(&left)
		if err != nil || !left {
			return err
		}
		select {
		case <-ctx.Done():
			return cmp.Or(context.Cause(ctx), ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
