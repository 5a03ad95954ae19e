package replay

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/pawlhq/pawl/internal/replay/eventlog"
	"github.com/pawlhq/pawl/internal/replay/fold"
)

// Log is a log of fines that can be read again and again, as events for Pawl and
// by the fold. Make one with [File] or [Made].
type Log struct {
	name  string
	limit int // of events; 0 for none
	cases func() eventlog.Cases
	fold  func(each func(fold.Case) error) (fold.Totals, error)
}

// File is the log in a file, plain or gzip'd. It is opened when it is read.
func File(path string) Log {
	return Log{
		name:  path,
		cases: func() eventlog.Cases { return eventlog.File(path) },
		fold:  func(each func(fold.Case) error) (fold.Totals, error) { return fold.File(path, each) },
	}
}

// Made is a log that is made up; see [eventlog.Generate].
func Made(seed uint64, cases int) Log {
	l := Log{
		name:  fmt.Sprintf("made up (seed %d, %d cases)", seed, cases),
		cases: func() eventlog.Cases { return eventlog.Generate(seed, cases) },
	}
	l.fold = func(each func(fold.Case) error) (fold.Totals, error) {
		// The fold reads for itself, so it gets the log as a file would hold it.
		r, w := io.Pipe()
		written := make(chan struct{})
		go func() {
			defer close(written)
			w.CloseWithError(eventlog.Write(w, l.cases()))
		}()
		totals, err := fold.Run(r, each)
		r.CloseWithError(io.ErrClosedPipe)
		<-written
		return totals, err
	}
	return l
}

// First is the log up to the case with so many events, which is still whole.
func (l Log) First(events int) Log {
	l.name = fmt.Sprintf("the first %d events of %s", events, l.name)
	l.limit = events
	return l
}

// count is how many events the log has, about.
func (l Log) count() (events int64, err error) {
	if l.limit > 0 {
		return int64(l.limit), nil
	}
	for c, err := range l.cases() {
		if err != nil {
			return 0, fmt.Errorf("count the events of the log: %w", err)
		}
		events += int64(len(c.Events))
	}
	return events, nil
}

// String says where the log comes from.
func (l Log) String() string { return l.name }

var errEnough = errors.New("enough events")

// each calls do with every case, and with what the fold makes of it. It returns
// the fold's totals.
func (l Log) each(do func(eventlog.Case, fold.Case) error) (fold.Totals, error) {
	next, stop := iter.Pull2(l.cases())
	defer stop()
	events := 0
	totals, err := l.fold(func(want fold.Case) error {
		c, err, ok := next()
		switch {
		case err != nil:
			return err
		case !ok || c.ID != want.ID || len(c.Events) != len(want.Outcomes):
			return fmt.Errorf("the reader and the fold do not see the same cases: %q with %d events, %q with %d",
				c.ID, len(c.Events), want.ID, len(want.Outcomes))
		}
		if err := do(c, want); err != nil {
			return err
		}
		if events += len(c.Events); l.limit > 0 && events >= l.limit {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return totals, fmt.Errorf("replay %s: %w", l, err)
	}
	return totals, nil
}
