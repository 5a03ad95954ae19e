// Package testlog is a log that a test can search.
package testlog

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// Log keeps every record of every level, as a line with the message and its attributes. It is a [slog.Handler]; the zero value is empty.
// Attributes of With and groups of WithGroup are dropped.
type Log struct {
	mu   sync.Mutex
	list []string
}

// List returns the lines so far.
func (l *Log) List() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// Count returns how many lines so far contain the fragment.
func (l *Log) Count(fragment string) (n int) {
	for _, line := range l.List() {
		if strings.Contains(line, fragment) {
			n++
		}
	}
	return n
}

// Enabled implements [slog.Handler].
func (l *Log) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements [slog.Handler].
func (l *Log) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements [slog.Handler].
func (l *Log) WithGroup(string) slog.Handler { return l }

// Handle implements [slog.Handler].
func (l *Log) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, line)
	return nil
}
