// Package play replays a log of traffic fines, shows how far it is, and checks
// what has become durable. The demo and the command replay share it.
package play

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
	"github.com/pawlhq/pawl/examples/fines/eventlog"
	"github.com/pawlhq/pawl/examples/fines/replay"
	"github.com/pawlhq/pawl/internal/progress"
)

// FileName is the log's name in the folder of the event logs.
const FileName = "road_traffic_fines.csv.gz"

// MadeUp is how many cases a log has that is made up.
const MadeUp = 100_000

// Log is a log with the number of its events, about.
type Log struct {
	replay.Log
	Events int64
}

// Find is the log in the folder, or one that is made up where there is none or
// the folder is "". Of either it is the beginning with so many events, or all of
// it for 0.
func Find(folder string, events int64) (Log, error) {
	log := replay.Made(1, MadeUp)
	cases := func() eventlog.Cases { return eventlog.Generate(1, MadeUp) }
	if folder != "" {
		path := filepath.Join(folder, FileName)
		_, err := os.Stat(path)
		switch {
		case err == nil:
			log = replay.File(path)
			cases = func() eventlog.Cases { return eventlog.File(path) }
		case !errors.Is(err, fs.ErrNotExist):
			return Log{}, fmt.Errorf("find the log: %w", err)
		}
	}
	if events > 0 {
		return Log{log.First(int(events)), events}, nil
	}
	for c, err := range cases() { // so that progress can say what is left
		if err != nil {
			return Log{}, fmt.Errorf("count the events of the log: %w", err)
		}
		events += int64(len(c.Events))
	}
	return Log{log, events}, nil
}

// Options say what is replayed, and against what.
type Options struct {
	Log      Log
	Targets  []replay.Target
	Engine   *engine.Engine // verifies the chains
	Pool     *pgxpool.Pool  // of the same database
	Schema   string
	Tenant   string    // must hold nothing but this log
	Progress io.Writer // takes how far it is
}

// Run replays the log and checks what is durable. The report is there unless
// nothing was replayed. The error says what failed, or what is not as promised.
func Run(ctx context.Context, o Options) (*replay.Report, error) {
	meter := progress.New(o.Progress, "replay", "events", o.Log.Events)
	report, err := replay.Run(ctx, replay.Config{Log: o.Log.Log, Targets: o.Targets, Tenant: o.Tenant, Progress: meter.Set})
	meter.Stop()
	if err != nil {
		return report, err
	}
	meter = progress.New(o.Progress, "compare", "events", o.Log.Events)
	err = replay.Check(ctx, report, replay.Evidence{
		Log: o.Log.Log, Database: o.Pool, Verifier: o.Engine, Schema: o.Schema, Tenant: o.Tenant, Progress: meter.Set,
	})
	meter.Stop()
	if err != nil {
		return report, err
	}
	return report, report.Err()
}
