// Package progress prints the progress of a long task: a line that is rewritten on a terminal, or a line every few seconds.
package progress

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Intervals of output.
const (
	redrawEvery = 100 * time.Millisecond
	lineEvery   = 5 * time.Second
)

// Meter shows the progress of one task. It is safe for concurrent use. It writes only when it is called, so it needs no goroutine. Write
// errors are ignored, because progress must not fail a task.
type Meter struct {
	mu       sync.Mutex
	out      io.Writer
	work     string
	unit     string
	total    int64
	done     int64
	terminal bool
	now      func() time.Time
	began    time.Time
	next     time.Time
	width    int // of the line on the terminal
}

// New returns a meter. total is zero if it is unknown; unit is a noun in the plural. out is usually os.Stderr.
func New(out io.Writer, work, unit string, total int64) *Meter {
	return newMeter(out, work, unit, total, Terminal(out), time.Now)
}

func newMeter(out io.Writer, work, unit string, total int64, terminal bool, now func() time.Time) *Meter {
	m := &Meter{out: out, work: work, unit: unit, total: total, terminal: terminal, now: now, began: now()}
	m.next = m.began.Add(m.every())
	return m
}

// Terminal reports whether w is a terminal.
func Terminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Set sets the amount that is done.
func (m *Meter) Set(done int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done = done
	m.tick()
}

// Add adds to the amount that is done.
func (m *Meter) Add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += n
	m.tick()
}

// Stop removes the line from the terminal. It may be called twice.
func (m *Meter) Stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.width > 0 {
		m.write("\r" + strings.Repeat(" ", m.width) + "\r")
		m.width = 0
	}
}

func (m *Meter) every() time.Duration {
	if m.terminal {
		return redrawEvery
	}
	return lineEvery
}

func (m *Meter) tick() {
	now := m.now()
	if now.Before(m.next) {
		return
	}
	m.next = now.Add(m.every())
	line := m.line(now.Sub(m.began))
	if !m.terminal {
		m.write(line + "\n")
		return
	}
	rest := max(m.width-len(line), 0)
	m.write("\r" + line + strings.Repeat(" ", rest))
	m.width = len(line)
}

func (m *Meter) write(s string) { _, _ = io.WriteString(m.out, s) }

// line returns the output in ASCII, so that its length is its width.
func (m *Meter) line(elapsed time.Duration) string {
	rate := float64(m.done) / elapsed.Seconds()
	var b strings.Builder
	b.WriteString(m.work + ": ")
	if m.total > 0 {
		fmt.Fprintf(&b, "%d%%, %s of %s %s", min(m.done*100/m.total, 100), Grouped(m.done), Grouped(m.total), m.unit)
	} else {
		fmt.Fprintf(&b, "%s %s", Grouped(m.done), m.unit)
	}
	fmt.Fprintf(&b, ", %s/s", Grouped(int64(rate)))
	if left := m.total - m.done; left > 0 && rate > 0 {
		fmt.Fprintf(&b, ", %s left", time.Duration(float64(left)/rate*float64(time.Second)).Round(time.Second))
	}
	return b.String()
}

// Grouped formats a number with commas between thousands.
func Grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
