package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
)

// The size of the load. The test's own is small; the benchmark has the full one.
var (
	loadSubscribers = flag.Int("pawl.subscribers", 0, "WebSocket subscribers of the load test and the benchmark")
	loadRate        = flag.Int("pawl.rate", 0, "transitions a second of the load test and the benchmark")
	loadSeconds     = flag.Int("pawl.seconds", 0, "seconds of load")
)

// load is so many subscribers who all get everything.
type load struct {
	subscribers int
	rate        int // transitions a second
	total       int // transitions
}

func (l load) orFlags() load {
	seconds := l.total / l.rate
	for _, o := range []struct{ field, flag *int }{{&l.subscribers, loadSubscribers}, {&l.rate, loadRate}, {&seconds, loadSeconds}} {
		if *o.flag > 0 {
			*o.field = *o.flag
		}
	}
	l.total = l.rate * seconds
	return l
}

// outcome is what a load came to.
type outcome struct {
	took    time.Duration
	bytes   int64
	latency []time.Duration // from before a submission to its event, sampled, sorted
}

func (o outcome) percentile(p float64) time.Duration {
	return o.latency[min(int(p*float64(len(o.latency))), len(o.latency)-1)]
}

func TestEverySubscriberGetsEverythingInOrder(t *testing.T) {
	// however slow the machine is
	s := newServer(t, func(c *api.Config) { c.Stream.WriteTimeout, c.Stream.PingEvery = 5*time.Minute, time.Hour })
	l := load{subscribers: 100, rate: 300, total: 900}
	if testing.Short() {
		l = load{subscribers: 20, rate: 300, total: 300}
	}
	l = l.orFlags()
	o := l.run(s)
	t.Logf("%d subscribers, %d transitions a second for %v: %d MB, latency p50 %v, p99 %v, max %v", l.subscribers, l.rate,
		o.took.Round(time.Millisecond), o.bytes>>20, o.percentile(.5), o.percentile(.99), o.percentile(1))
}

// BenchmarkStream is 1,000 subscribers at 1,000 transitions a second, in one
// process with everything but the database. Run it with -benchtime 1x.
func BenchmarkStream(b *testing.B) {
	l := load{subscribers: 1000, rate: 1000, total: 10_000}.orFlags()
	for range b.N {
		s := newServer(b)
		b.ResetTimer()
		o := l.run(s)
		b.StopTimer()
		b.ReportMetric(float64(l.subscribers*l.total)/o.took.Seconds(), "events/s")
		b.ReportMetric(float64(l.total)/o.took.Seconds(), "transitions/s")
		b.ReportMetric(float64(o.percentile(.5).Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(o.percentile(.99).Microseconds())/1000, "p99-ms")
		b.ReportMetric(float64(o.bytes)/o.took.Seconds()/1e6, "MB/s")
	}
}

// run connects the subscribers, submits at the rate, and returns when every
// subscriber has had every event. It fails the test for one that is missing or
// out of order.
func (l load) run(s *server) outcome {
	s.t.Helper()
	submitted := make([]time.Time, l.total+1) // by position; written before the event is there
	readers := make([]*rawReader, l.subscribers)
	for i := range readers {
		readers[i] = s.rawReader()
	}
	defer func() {
		for _, r := range readers {
			_ = r.socket.Close()
		}
	}()
	s.waitForStreams(l.subscribers)
	var all sync.WaitGroup
	failed := make(chan error, l.subscribers)
	for _, r := range readers {
		all.Go(func() {
			if err := r.readUpTo(int64(l.total), submitted); err != nil {
				failed <- err
			}
		})
	}
	began := time.Now()
	if err := l.submit(s, submitted); err != nil {
		s.t.Fatal(err)
	}
	all.Wait()
	o := outcome{took: time.Since(began)}
	close(failed)
	for err := range failed {
		s.t.Error(err)
	}
	for _, r := range readers {
		o.bytes += r.bytes
		o.latency = append(o.latency, r.latency...)
	}
	slices.Sort(o.latency)
	if len(o.latency) == 0 {
		s.t.Fatal("nothing was measured")
	}
	return o
}

// submit does the transitions at the rate, in groups of those that are due, as
// independent callers would. One goroutine submits, so that a position is known
// in advance.
func (l load) submit(s *server, submitted []time.Time) error {
	began := time.Now()
	for done := 0; done < l.total; {
		due := min(int(time.Since(began).Seconds()*float64(l.rate))+1, l.total)
		if due == done {
			await.Pass("the rate of the load", time.Second/time.Duration(l.rate))
			continue
		}
		var commands []transitions.Command
		now := time.Now()
		for position := done + 1; position <= due; position++ {
			submitted[position] = now
			commands = append(commands, transitions.Command{Workflow: "parcel", Transition: "pack", Key: uuid.NewString(),
				Payload: []byte(`{"to":"Wien","weight":` + strconv.Itoa(position%1000) + `}`)})
		}
		for _, reply := range s.engine.SubmitMany(context.Background(), commands) {
			if reply.Err != nil {
				return reply.Err
			}
		}
		done = due
	}
	return nil
}

// rawReader is a client that costs as little as possible: it reads frames and
// looks at their positions.
type rawReader struct {
	socket  net.Conn
	in      *bufio.Reader
	bytes   int64
	latency []time.Duration
}

// rawReader subscribes to everything from now on.
func (s *server) rawReader() *rawReader {
	s.t.Helper()
	c := s.dial()
	c.subscribe("a", `"now"`, `{}`)
	c.events("caught_up")
	return &rawReader{socket: c.ws.NetConn(), in: bufio.NewReaderSize(c.ws.NetConn(), 32<<10)}
}

var eventPrefix = []byte(`{"op":"event","id":"a","position":`)

// readUpTo reads the events 1 to last, and samples how long they took.
func (r *rawReader) readUpTo(last int64, submitted []time.Time) error {
	if err := r.socket.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		return err
	}
	for next := int64(1); next <= last; {
		opcode, n, err := r.header()
		if err != nil {
			return fmt.Errorf("before position %d: %w", next, err)
		}
		if opcode == 9 { // a ping, which need not be answered for a minute
			if _, err := r.in.Discard(n); err != nil {
				return err
			}
			continue
		}
		head, err := r.in.Peek(min(n, 64))
		if err != nil {
			return err
		}
		rest, isEvent := bytes.CutPrefix(head, eventPrefix)
		digits, _, ends := bytes.Cut(rest, []byte(","))
		position, err := strconv.ParseInt(string(digits), 10, 64)
		if !isEvent || !ends || err != nil || position != next {
			return fmt.Errorf("instead of position %d came %q", next, head)
		}
		if position%37 == 0 {
			r.latency = append(r.latency, time.Since(submitted[position]))
		}
		if _, err := r.in.Discard(n); err != nil {
			return err
		}
		next++
	}
	return nil
}

// header reads a frame's header.
func (r *rawReader) header() (opcode byte, n int, err error) {
	var h [10]byte
	if _, err := io.ReadFull(r.in, h[:2]); err != nil {
		return 0, 0, err
	}
	switch n = int(h[1]); n {
	case 126:
		_, err = io.ReadFull(r.in, h[2:4])
		n = int(binary.BigEndian.Uint16(h[2:]))
	case 127:
		_, err = io.ReadFull(r.in, h[2:10])
		n = int(binary.BigEndian.Uint64(h[2:]))
	}
	r.bytes += int64(n) + 4
	return h[0] & 0xf, n, err
}
