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

func TestAMissedGoalIsWrittenDown(t *testing.T) {
	of := func(name string, rate int64, took time.Duration, ceiling bool) *result {
		s := &sample{all: rate, commands: rate, took: time.Second, cost: counters{statements: -1}, latency: latencyOf([]time.Duration{took})}
		return &result{scenario: &scenario{name: name, ceiling: ceiling}, samples: []*sample{s}}
	}
	r := &report{results: []*result{
		of(floorMany, 1000, time.Millisecond, false), of(floorOne, 100, time.Millisecond, false),
		of("low ceiling", 9_000, time.Millisecond, true), of("high ceiling", 10_000, time.Millisecond, true),
		of(submitMost, 6_999, time.Millisecond, false), of(submitBatches, 8_000, time.Millisecond, false),
		of(submitOne, 100, 590*time.Microsecond, false), of(createOne, 100, 460*time.Microsecond, false),
		of(awaitMany, 1_190, time.Millisecond, false), of(awaitOne, 100, 2900*time.Microsecond, false),
	}}
	r.results[4].scenario.floor = floorMany
	var b strings.Builder
	r.goals(&b)
	for i, line := range strings.Split(strings.TrimSpace(b.String()), "\n")[1:] {
		want := "not run"
		if measured := []string{"missed", "missed", "reached", "not run", "reached", "missed", "not run", "missed",
			"reached"}; i < len(measured) {
			want = measured[i]
		}
		if !strings.HasPrefix(strings.TrimSpace(line), want) {
			t.Errorf("%q should begin with %s", line, want)
		}
	}
	b.Reset()
	r.table(&b)
	for _, want := range []string{"10,000", "7.00", "0.70", "–"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %s:\n%s", want, b.String())
		}
	}
}
