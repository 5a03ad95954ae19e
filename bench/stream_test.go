package bench

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSubscriber_CountsGaps(t *testing.T) {
	var measured atomic.Int64
	measured.Store(12)
	s := &subscriber{every: 2, measured: &measured}
	s.last.Store(10)
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	event := func(position string) []byte {
		return []byte(`{"op":"event","id":"a","position":` + position +
			`,"event":{"time":"` + at.Format(time.RFC3339Nano) + `","position":` + position + `}}`)
	}
	s.take([]byte(`{"op":"caught_up","id":"a","position":99}`), at)
	for _, position := range []string{"11", "12", "13", "16", "16", "15", "18"} {
		s.take(event(position), at.Add(time.Second))
	}
	assert.Truef(t, s.lost == 3 && s.disordered == 2 && s.delivered == 3 && s.last.Load() == 18,
		"lost %d, out of order %d, delivered %d, last %d", s.lost, s.disordered, s.delivered, s.last.Load())
	l := latencyOf(s.latencies)
	assert.Truef(t, l.n == 2 && l.p50 >= 990*time.Millisecond && l.p50 <= 1010*time.Millisecond, "%d latencies, median %v", l.n, l.p50)
}
