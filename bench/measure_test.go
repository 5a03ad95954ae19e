package bench

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQuantilesOfManyAreInOrder(t *testing.T) {
	var list []time.Duration
	for i := range 101 {
		list = append(list, time.Duration(100-i)*time.Millisecond)
	}
	assert.Equal(t, (latency{101, 50 * time.Millisecond, 99 * time.Millisecond}), latencyOf(list))
	assert.Equal(t, (latency{}), latencyOf(nil), "nothing it")
}

func TestTheMeasuredTimeEndsWithTheLastCall(t *testing.T) {
	const long = 50 * time.Millisecond
	slow := func(context.Context) (int, error) { <-time.After(long); return 7, nil }
	quick := func(context.Context) (int, error) { return 1, nil }
	s, err := phase(t.Context(), []caller{slow, quick}, 0, time.Millisecond)
	require.NoError(t, err)
	assert.Truef(t, s.took >= long, "a call of %v was cut off at %v", long, s.took)
	assert.Equalf(t, int64(s.latency.n)+6, s.commands, "commands in %d calls, one of which did seven", s.latency.n)
}

func TestOneCallersErrorEndsTheRound(t *testing.T) {
	boom := errors.New("boom")
	patient := func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, nil }
	failing := func(context.Context) (int, error) { return 0, boom }
	_, err := phase(t.Context(), []caller{patient, failing}, 0, time.Hour)
	assert.ErrorIs(t, err, boom)
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
		want := (latency{151, 25 * time.Millisecond, 98 * time.Millisecond})
		assert.Truef(t, err == nil && s.latency == want, "%+v, want %+v (%v)", s, want, err)
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
	got, ok := compare(of(900, 300, 910), of(100, 30, 100), (*sample).rate)
	assert.Truef(t, ok && got == 9.1, "got %v, %v", got, ok)
	got = median([]float64{4, 1, 3, 2})
	assert.Truef(t, got == 2.5, "the median is %v", got)
	for _, r := range []*result{nil, of(0, 0, 0)} {
		_, ok := compare(of(1, 2, 3), r, (*sample).rate)
		assert.Falsef(t, ok, "compared with %v", r)
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
		assert.Contains(t, b.String(), want, "the table lacks")
	}
	b.Reset()
	r.goals(&b)
	const want = "goal wanted reached Submit: 256 callers / ceiling: 2 connections (rate) ≥ 0.75 0.7 missed " +
		"Submit: 256 callers (bytes of WAL) ≤ 2000 0"
	assert.Equalf(t, want, strings.Join(strings.Fields(b.String()), " "), "the goals are\n%s", b.String())
}
