// Package dialerror is how an error of connecting to a database is told: in one line.
package dialerror

import (
	"slices"
	"strings"
)

// OneLine is an error whose text has one line. The driver gives a line to every address that it tried, and tries each with and
// without TLS: what is said twice is told once.
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
