// Package dialerror formats connection errors of databases in one line.
package dialerror

import (
	"slices"
	"strings"
)

// OneLine returns an error whose text is one line without repetitions. The driver has a line for each address, with and without TLS.
func OneLine(err error) error { return oneLine{err} }

type oneLine struct{ error }

// Error returns the lines behind one another.
func (e oneLine) Error() string {
	var parts []string
	for line := range strings.Lines(e.error.Error()) {
		if line = strings.Join(strings.Fields(line), " "); !slices.Contains(parts, line) {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, " ")
}

// Unwrap returns the error.
func (e oneLine) Unwrap() error { return e.error }
