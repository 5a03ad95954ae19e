package bench

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestAQuantileIsOffByLessThanOnePercent(t *testing.T) {
	for d := time.Duration(1); d < 10*time.Minute; d += d/3 + 1 {
		h := newHistogram()
		h.add(d)
		if got := h.quantile(0.5); math.Abs(float64(got-d)) > 0.01*float64(d) {
			t.Errorf("%v is remembered as %v", d, got)
		}
	}
	for i := range bucketCount {
		if got := bucketOf(middleOf(i)); got != i {
			t.Fatalf("the middle of bucket %d is in bucket %d", i, got)
		}
	}
}

func TestQuantilesOfManyAreInOrder(t *testing.T) {
	a, b := newHistogram(), newHistogram()
	for i := range 1000 {
		[]*histogram{a, b}[i%2].add(time.Duration(i+1) * time.Millisecond)
	}
	a.add(-time.Second) // a clock that was set back
	a.add(24 * time.Hour)
	a.merge(b)
	for q, want := range map[float64]time.Duration{0: 0, 0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond} {
		if got := a.quantile(q); math.Abs(float64(got-want)) > 0.01*float64(want) {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if got := newHistogram().quantile(0.5); got != 0 {
		t.Errorf("the median of nothing is %v", got)
	}
}

func TestTheMeasuredTimeEndsWithTheLastCall(t *testing.T) {
	const long = 50 * time.Millisecond
	slow := func(context.Context) (int, error) { <-time.After(long); return 7, nil }
	quick := func(context.Context) (int, error) { return 1, nil }
	s, err := phase(t.Context(), []caller{slow, quick}, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if s.took < long {
		t.Errorf("a call of %v was cut off at %v", long, s.took)
	}
	if s.commands != s.latency.n+6 {
		t.Errorf("%d commands in %d calls, one of which did seven", s.commands, s.latency.n)
	}
}

func TestOneCallersErrorEndsTheRound(t *testing.T) {
	boom := errors.New("boom")
	patient := func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, nil }
	failing := func(context.Context) (int, error) { return 0, boom }
	if _, err := drive(t.Context(), []caller{patient, failing}, phases{time.Hour, time.Hour}); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
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
	of := func(name string, rate int64, latency time.Duration, ceiling bool) *result {
		s := &sample{all: rate, commands: rate, took: time.Second, latency: newHistogram(), cost: cost{statements: -1}}
		s.latency.add(latency)
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
		if measured := []string{"missed", "missed", "reached", "not run", "reached", "missed", "not run", "missed", "reached"}; i < len(measured) {
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
