package replay

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawlhq/pawl/examples/fines/replay/eventlog"
	"github.com/pawlhq/pawl/examples/fines/replay/fold"
)

// Log is a log of fines that can be read again and again. Make one with [File],
// [Made] or [Find].
type Log struct {
	name  string
	limit int // of events; 0 for none
	open  func() (io.ReadCloser, error)
}

// File is the log in a gzip'd file. It is opened when it is read.
func File(path string) Log {
	return Log{name: path, open: func() (io.ReadCloser, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return struct {
			io.Reader
			io.Closer
		}{z, f}, nil
	}}
}

// Made is a log that is made up; see [eventlog.Generate].
func Made(seed uint64, cases int) Log {
	return Log{name: fmt.Sprintf("made up (seed %d, %d cases)", seed, cases),
		open: func() (io.ReadCloser, error) { return io.NopCloser(eventlog.Generate(seed, cases)), nil }}
}

// Find returns the log in the folder of the event logs, or a generated one if there is none or the folder is "". It has the first events of
// that log, or all for zero.
func Find(folder string, events int64) (Log, error) {
	log := Made(1, 100_000)
	if folder != "" {
		path := filepath.Join(folder, "road_traffic_fines.csv.gz")
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

// First is the log up to the case with so many events, which is still whole.
func (l Log) First(events int) Log {
	l.name = fmt.Sprintf("the first %d events of %s", events, l.name)
	l.limit = events
	return l
}

// String says where the log comes from.
func (l Log) String() string { return l.name }

var errEnough = errors.New("enough events")

// each calls do with every case as the fold has played it. It returns the fold's
// digest.
func (l Log) each(do func(fold.Case) error) (digest string, err error) {
	r, err := l.open()
	if err != nil {
		return "", fmt.Errorf("replay: open the log: %w", err)
	}
	events := 0
	digest, err = fold.Run(r, func(c fold.Case) error {
		if err := do(c); err != nil {
			return err
		}
		if events += len(c.Rows); l.limit > 0 && events >= l.limit {
			return errEnough
		}
		return nil
	})
	if closeErr := r.Close(); err == nil || errors.Is(err, errEnough) {
		err = closeErr
	}
	if err != nil {
		return digest, fmt.Errorf("replay %s: %w", l, err)
	}
	return digest, nil
}
