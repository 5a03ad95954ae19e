package api_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
)

// The size of the benchmark's load.
var (
	loadSubscribers = flag.Int("pawl.subscribers", 1000, "WebSocket subscribers of the benchmark")
	loadRate        = flag.Int("pawl.rate", 1000, "transitions a second of the benchmark")
	loadSeconds     = flag.Int("pawl.seconds", 10, "seconds of load")
)

func TestEverySubscriberGetsEverythingInOrder(t *testing.T) {
	// however slow the machine is
	s := newServer(t, func(c *api.Config) { c.Stream.WriteTimeout, c.Stream.PingEvery = 5*time.Minute, time.Hour })
	s.load(20, 300, 300)
}

// BenchmarkStream delivers to 1,000 subscribers at 1,000 transitions a second, in one process with everything but the database. Run it with
// -benchtime 1x.
func BenchmarkStream(b *testing.B) {
	total := *loadRate * *loadSeconds
	for range b.N {
		s := newServer(b)
		b.ResetTimer()
		took, latency := s.load(*loadSubscribers, *loadRate, total)
		b.StopTimer()
		b.ReportMetric(float64(*loadSubscribers*total)/took.Seconds(), "events/s")
		b.ReportMetric(float64(total)/took.Seconds(), "transitions/s")
		for name, at := range map[string]int{"p50-ms": len(latency) / 2, "p99-ms": len(latency) * 99 / 100} {
			b.ReportMetric(float64(latency[at].Microseconds())/1000, name)
		}
	}
}

// load submits transitions at a rate, and returns when every subscriber has every event in order: how long that took, and samples of the
// time from before a submission to its event, sorted.
func (s *server) load(subscribers, rate, total int) (took time.Duration, latency []time.Duration) {
	s.t.Helper()
	submitted := make([]time.Time, total+1) // by position; written before the event is there
	clients := make([]*wsClient, subscribers)
	for i := range clients {
		clients[i] = s.dial()
		clients[i].subscribe("a", `"now"`, `{}`)
		clients[i].events("caught_up")
	}
	s.waitForStreams(subscribers)
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, c := range clients {
		all.Go(func() {
			samples, err := c.readUpTo(total, submitted)
			assert.NoError(s.t, err)
			mu.Lock()
			defer mu.Unlock()
			latency = append(latency, samples...)
		})
	}
	began := time.Now()
	for done := 0; done < total; { // one goroutine submits, so that a position is known in advance
		due := min(int(time.Since(began).Seconds()*float64(rate))+1, total)
		if due == done {
			await.Pass("the rate of the load", time.Second/time.Duration(rate))
			continue
		}
		var commands []transitions.Command
		for ; done < due; done++ {
			submitted[done+1] = time.Now()
			commands = append(commands, transitions.Command{Workflow: "parcel", Transition: "pack", Key: uuid.NewString(),
				Payload: []byte(`{"to":"Wien","weight":` + strconv.Itoa(done%1000) + `}`)})
		}
		for _, reply := range s.engine.SubmitMany(context.Background(), commands) {
			require.NoError(s.t, reply.Err)
		}
	}
	all.Wait()
	require.NotEmpty(s.t, latency)
	slices.Sort(latency)
	return time.Since(began), latency
}

// readUpTo reads the events 1 to last, and samples how long they took. It decodes only their positions.
func (c *wsClient) readUpTo(last int, submitted []time.Time) (latency []time.Duration, err error) {
	if err := c.ws.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		return nil, err
	}
	for next := 1; next <= last; next++ {
		_, text, err := c.ws.ReadMessage()
		if err != nil {
			return nil, fmt.Errorf("before position %d: %w", next, err)
		}
		if !bytes.HasPrefix(text, fmt.Appendf(nil, `{"op":"event","id":"a","position":%d,`, next)) {
			return nil, fmt.Errorf("instead of position %d came %.64q", next, text)
		}
		if next%37 == 0 {
			latency = append(latency, time.Since(submitted[next]))
		}
	}
	return latency, nil
}
