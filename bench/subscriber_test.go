package bench

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"
)

// textFrame writes a frame as RFC 6455, section 5.2, has it.
func textFrame(payload []byte) []byte {
	b := []byte{0x81}
	switch n := len(payload); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	return append(b, payload...)
}

func FuzzFramesAreTakenApartWhereverTheyAreCut(f *testing.F) {
	for _, n := range []int{0, 1, 125, 126, 0xffff, 0x10000} {
		f.Add(bytes.Repeat([]byte("x"), n), uint(n/2))
	}
	f.Fuzz(func(t *testing.T, payload []byte, cut uint) {
		frame(payload) // anything may come
		whole := textFrame(payload)
		if _, _, rest, ok := frame(whole[:cut%uint(len(whole))]); ok || len(rest) != int(cut%uint(len(whole))) {
			t.Fatalf("the first %d of %d bytes were taken for a frame", cut%uint(len(whole)), len(whole))
		}
		opcode, got, rest, ok := frame(append(whole, 0x81))
		if !ok || opcode != 1 || !bytes.Equal(got, payload) || len(rest) != 1 {
			t.Fatalf("a frame of %d bytes came out as %d of kind %d with %d left, %v", len(payload), len(got), opcode, len(rest), ok)
		}
	})
}

func TestASubscriberCountsWhatIsMissingAndOutOfOrder(t *testing.T) {
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
	if s.lost != 3 || s.disordered != 2 || s.delivered != 3 || s.last.Load() != 18 {
		t.Errorf("lost %d, out of order %d, delivered %d, last %d", s.lost, s.disordered, s.delivered, s.last.Load())
	}
	if l := latencyOf(s.latencies); l.n != 2 || l.p50 < 990*time.Millisecond || l.p50 > 1010*time.Millisecond {
		t.Errorf("%d latencies, median %v", l.n, l.p50)
	}
}
