// Package progress shows how far long work has come: one line that is written
// anew on a terminal, and a line every few seconds elsewhere.
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

// How often something is written.
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
	width    int // of the line that is on the terminal
}

// New begins to measure. total is how much there is to do, 0 where that is not
// known; unit names what is counted, in the plural. out is usually os.Stderr.
func New(out io.Writer, work, unit string, total int64) *Meter {
	return newMeter(out, work, unit, total, Terminal(out), time.Now)
}

func newMeter(out io.Writer, work, unit string, total int64, terminal bool, now func() time.Time) *Meter {
	m := &Meter{out: out, work: work, unit: unit, total: total, terminal: terminal, now: now, began: now()}
	m.next = m.began.Add(m.every())
	return m
}

// Terminal reports whether what is written goes to a terminal.
func Terminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Set says how much is done.
func (m *Meter) Set(done int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done = done
	m.tick()
}

// Add says how much more is done.
func (m *Meter) Add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += n
	m.tick()
}

// Stop takes the line off the terminal. It may be called twice.
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

// line is what is written, in ASCII so that its length is its width.
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

// Grouped writes a number with a comma between thousands.
func Grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
