package eventlog

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"slices"
)

// File reads a log from a file; see Read. The file is open while the result is
// being ranged over.
func File(path string) Cases {
	return func(yield func(Case, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(Case{}, err)
			return
		}
		defer f.Close() // it was only read
		for c, err := range Read(f) {
			if !yield(c, err) {
				return
			}
		}
	}
}

// Read reads a log, plain or gzip'd, and holds one case at a time. It ends at
// the first thing that is wrong, with an error that names the line: a row that
// does not fit its activity, a case that does not begin with its creation, that
// has two, or that comes back after another. It can be ranged over once.
func Read(r io.Reader) Cases {
	return func(yield func(Case, error) bool) {
		rows, err := open(r)
		if err != nil {
			yield(Case{}, err)
			return
		}
		g := grouper{seen: map[string]bool{}}
		for {
			row, err := rows.Read()
			if err == io.EOF {
				break
			}
			if err != nil {
				yield(Case{}, fmt.Errorf("the log cannot be read: %w", err))
				return
			}
			done, err := g.add(row)
			if err != nil {
				line, _ := rows.FieldPos(0)
				yield(Case{}, fmt.Errorf("line %d of the log: %w", line, err))
				return
			}
			if done.ID != "" && !yield(done, nil) {
				return
			}
		}
		if g.current.ID != "" {
			yield(g.current, nil)
		}
	}
}

// open unpacks the log and reads its header.
func open(r io.Reader) (*csv.Reader, error) {
	b := bufio.NewReader(r)
	r = b
	if magic, err := b.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		if r, err = gzip.NewReader(b); err != nil {
			return nil, fmt.Errorf("the log cannot be unpacked: %w", err)
		}
	}
	rows := csv.NewReader(r)
	rows.ReuseRecord = true
	head, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("the log has no header: %w", err)
	}
	if !slices.Equal(head, header[:]) {
		return nil, fmt.Errorf("the log has the columns %q, want %q", head, header)
	}
	return rows, nil
}

// grouper gathers rows into cases.
type grouper struct {
	current Case
	seen    map[string]bool
}

// add takes a row. It returns the case that the row ends by beginning another.
func (g *grouper) add(row []string) (done Case, err error) {
	e, err := parseRow(row)
	if err != nil {
		return Case{}, err
	}
	begins := e.Case != g.current.ID
	switch {
	case begins && g.seen[e.Case]:
		return Case{}, fmt.Errorf("case %s comes back after other cases", e.Case)
	case begins != (e.Transition == createFine):
		return Case{}, fmt.Errorf("case %s: %s is the first event of a case, and only that", e.Case, activities[0].name)
	case begins:
		done = g.current
		g.current = Case{ID: e.Case}
		g.seen[e.Case] = true
	}
	e.Number = len(g.current.Events) + 1
	g.current.Events = append(g.current.Events, e)
	return done, nil
}
