package progress

import (
	"bytes"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// clock is moved by hand.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func TestElsewhereALineIsWrittenEveryFewSeconds(t *testing.T) {
	var out bytes.Buffer
	c := &clock{time.Unix(0, 0)}
	m := newMeter(&out, "verify", "rows", 40_000, false, c.now)
	for range 10 { // 1,000 rows a second
		c.at = c.at.Add(time.Second)
		m.Add(1000)
	}
	m.Stop()
	want := "verify: 12%, 5,000 of 40,000 rows, 1,000/s, 35s left\nverify: 25%, 10,000 of 40,000 rows, 1,000/s, 30s left\n"
	assert.Equal(t, want, out.String())
}

func TestTerminalLineIsRewritten(t *testing.T) {
	var out bytes.Buffer
	c := &clock{time.Unix(0, 0)}
	m := newMeter(&out, "w", "x", 0, true, c.now)
	c.at = c.at.Add(redrawEvery)
	m.Set(100)
	m.Set(100) // too soon
	c.at = c.at.Add(100 * time.Second)
	m.Set(1)
	m.Stop()
	m.Stop()
	if got, want := out.String(), "\rw: 100 x, 1,000/s\rw: 1 x, 0/s      \r           \r"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestMoreThanWasExpectedIsNoMoreThanAllOfIt(t *testing.T) {
	m := newMeter(io.Discard, "w", "x", 10, false, time.Now)
	m.done = 20
	if got, want := m.line(time.Second), "w: 100%, 20 of 10 x, 20/s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMeterMayBeToldFromSeveralGoroutines(t *testing.T) {
	m := New(io.Discard, "w", "x", 0)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				m.Add(1)
			}
		})
	}
	wg.Wait()
	assert.Equal(t, int64(8000), m.done, "want 8000")
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		assert.Equalf(t, want, Grouped(n), "%d", n)
	}
}
