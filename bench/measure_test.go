package bench

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestQuantilesOfManyAreInOrder(t *testing.T) {
	var list []time.Duration
	for i := range 101 {
		list = append(list, time.Duration(100-i)*time.Millisecond)
	}
	if got := latencyOf(list); got != (latency{101, 50 * time.Millisecond, 99 * time.Millisecond}) {
		t.Errorf("got %+v", got)
	}
	if got := latencyOf(nil); got != (latency{}) {
		t.Errorf("of nothing it is %+v", got)
	}
}

func TestTheMeasuredTimeEndsWithTheLastCall(t *testing.T) {
	const long = 50 * time.Millisecond
	slow := func(context.Context) (int, error) { <-time.After(long); return 7, nil }
	quick := func(context.Context) (int, error) { return 1, nil }
	s, err := phase(t.Context(), []caller{slow, quick}, 0, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if s.took < long {
		t.Errorf("a call of %v was cut off at %v", long, s.took)
	}
	if s.commands != int64(s.latency.n)+6 {
		t.Errorf("%d commands in %d calls, one of which did seven", s.commands, s.latency.n)
	}
}

func TestOneCallersErrorEndsTheRound(t *testing.T) {
	boom := errors.New("boom")
	patient := func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, nil }
	failing := func(context.Context) (int, error) { return 0, boom }
	if _, err := phase(t.Context(), []caller{patient, failing}, 0, time.Hour); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
}

// A caller that was held up makes up for it, and those who waited are not forgotten.
func TestAtARateLatencyCountsFromWhenACallWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		slow := func(context.Context) (int, error) {
			if first {
				first = false
				<-time.After(100 * time.Millisecond)
			}
			return 1, nil
		}
		s, err := phase(t.Context(), []caller{slow}, 1000, 150*time.Millisecond)
		if want := (latency{151, 25 * time.Millisecond, 98 * time.Millisecond}); err != nil || s.latency != want {
			t.Errorf("%+v, want %+v (%v)", s, want, err)
		}
	})
}

func TestRatiosAreTakenRoundByRound(t *testing.T) {
	of := func(rates ...int64) *result {
		r := &result{scenario: &scenario{}}
		for _, n := range rates {
			r.samples = append(r.samples, &sample{commands: n, took: time.Second})
		}
		return r
	}
	// The machine was three times as slow in the second round.
	if got, ok := compare(of(900, 300, 910), of(100, 30, 100), (*sample).rate); !ok || got != 9.1 {
		t.Errorf("got %v, %v", got, ok)
	}
	if got := median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("the median is %v", got)
	}
	for _, r := range []*result{nil, of(0, 0, 0)} {
		if _, ok := compare(of(1, 2, 3), r, (*sample).rate); ok {
			t.Errorf("compared with %v", r)
		}
	}
}

func TestTheTableComparesWithFloorAndCeiling(t *testing.T) {
	of := func(name, floor string, rate int64) *result {
		s := &sample{all: rate, commands: rate, took: time.Second, cost: counters{statements: -1},
			latency: latencyOf([]time.Duration{time.Millisecond})}
		return &result{scenario: &scenario{name: name, floor: floor}, samples: []*sample{s}}
	}
	r := &report{results: []*result{of(floorMany, "", 1000), of(ceilingName, floorMany, 10_000), of(submitMost, floorMany, 7_000)}}
	var b strings.Builder
	r.table(&b)
	for _, want := range []string{"10,000", "7.00", "0.70", "–"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %s:\n%s", want, b.String())
		}
	}
	b.Reset()
	r.goals(&b)
	const want = "goal wanted reached Submit: 256 callers / ceiling: 2 connections (rate) ≥ 0.75 0.7 missed " +
		"Submit: 256 callers (bytes of WAL) ≤ 2000 0"
	if got := strings.Join(strings.Fields(b.String()), " "); got != want {
		t.Errorf("the goals are\n%s", b.String())
	}
}
