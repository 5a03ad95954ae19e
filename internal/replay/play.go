package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/progress"
)

// FileName is the log's name in the folder of the event logs.
const FileName = "road_traffic_fines.csv.gz"

// MadeUp is how many cases a log has that is made up.
const MadeUp = 100_000

// Find is the log in the folder, or one that is made up where there is none or
// the folder is "". Of either it is the beginning with so many events, or all of
// it for 0.
func Find(folder string, events int64) (Log, error) {
	log := Made(1, MadeUp)
	if folder != "" {
		path := filepath.Join(folder, FileName)
		_, err := os.Stat(path)
		switch {
		case err == nil:
			log = File(path)
		case !errors.Is(err, fs.ErrNotExist):
			return Log{}, fmt.Errorf("find the log: %w", err)
		}
	}
	if events > 0 {
		log = log.First(int(events))
	}
	return log, nil
}

// Options say what is replayed, and against what.
type Options struct {
	Log      Log
	Targets  []Target
	Engine   *engine.Engine // verifies the chains
	Pool     *pgxpool.Pool  // of the same database
	Schema   string
	Tenant   string    // must hold nothing but this log
	Progress io.Writer // takes how far it is
}

// Play replays the log, checks what is durable, and shows how far it is. The
// report is there unless nothing was replayed. The error says what failed, or
// what is not as promised.
func Play(ctx context.Context, o Options) (*Report, error) {
	events, err := o.Log.count() // so that progress can say what is left
	if err != nil {
		return nil, err
	}
	meter := progress.New(o.Progress, "replay", "events", events)
	report, err := Run(ctx, Config{Log: o.Log, Targets: o.Targets, Tenant: o.Tenant, Progress: meter.Set})
	meter.Stop()
	if err != nil {
		return report, err
	}
	meter = progress.New(o.Progress, "compare", "events", events)
	err = Check(ctx, report, Evidence{Log: o.Log, Database: o.Pool, Verifier: o.Engine, Schema: o.Schema, Tenant: o.Tenant,
		Progress: meter.Set})
	meter.Stop()
	if err != nil {
		return report, err
	}
	return report, report.Err()
}
