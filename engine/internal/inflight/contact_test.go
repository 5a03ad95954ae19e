package inflight

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
)

// eyes are a contact whose looks come when the test says.
type eyes struct {
	contact
	at    time.Time     // by the node's clock
	ahead time.Duration // the database's clock is
}

func newEyes() *eyes {
	return &eyes{contact: contact{lease: 30 * time.Second, every: time.Second, wait: 30 * time.Second}, at: time.Now()}
}

// look is a regular look some time after the last. It reports whether the lease
// that it finds may be taken over.
func (e *eyes) look(after time.Duration, attempt int) bool {
	e.at = e.at.Add(after)
	e.succeeded(e.at.Add(e.ahead), e.at.Add(-time.Millisecond), e.at)
	return len(e.takeable([]store.Candidate{{Ref: transitions.Ref{Key: "a"}, Attempt: attempt, Kind: store.Lapsed}}, true)) == 1
}

// until looks every second, and returns after how long the lease may be taken over.
func (e *eyes) until(attempt int) (waited time.Duration) {
	for !e.look(time.Second, attempt) {
		waited += time.Second
	}
	return waited + time.Second
}

func TestTakeOver_NeedsContactForALease(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		happens func(e *eyes)
		want    time.Duration // from then until a lease that has run out is taken over
	}{
		"nothing":                       {func(*eyes) {}, 2 * time.Second}, // it has run out in two looks
		"the node has just begun":       {func(e *eyes) { e.contact = newEyes().contact }, 31 * time.Second},
		"an outage":                     {func(e *eyes) { e.failed = true; e.at = e.at.Add(20 * time.Second) }, 31 * time.Second},
		"a look that failed":            {func(e *eyes) { e.failed = true; e.at = e.at.Add(5 * time.Second) }, 2 * time.Second},
		"the node was frozen":           {func(e *eyes) { e.at = e.at.Add(time.Hour) }, 31 * time.Second},
		"a database whose clock is on":  {func(e *eyes) { e.ahead = time.Minute }, 31 * time.Second},
		"a database whose clock is off": {func(e *eyes) { e.ahead = -time.Minute }, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEyes()
			e.until(1)
			tt.happens(e)
			assert.Equal(t, tt.want, e.until(2), "after")
		})
	}
}

// It may have been prolonged or claimed between two looks.
func TestALeaseMustHaveRunOutInTwoRegularLooks(t *testing.T) {
	t.Parallel()
	e := newEyes()
	e.wait = 0
	one := []store.Candidate{{Ref: transitions.Ref{Key: "a"}, Attempt: 1, Kind: store.Lapsed}, {Ref: transitions.Ref{Key: "due"}}}
	for i, step := range []struct {
		found []store.Candidate
		tick  bool
		want  int
	}{
		{one, true, 1}, {one, false, 1}, {nil, true, 0}, {one, false, 1}, {one, true, 1}, {one, true, 2}, {one, false, 2}, {nil, true, 0},
		{one, false, 1},
	} {
		assert.Lenf(t, e.takeable(step.found, step.tick), step.want, "look %d leaves", i+1)
	}
}
