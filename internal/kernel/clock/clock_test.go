package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTheClockFollowsTheDatabases(t *testing.T) {
	t.Parallel()
	c := New(nil)
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		sent := time.Now()
		c.Set(sent.Add(ahead), sent, sent)
		off := c.Now().Sub(time.Now().Add(ahead))
		assert.Truef(t, off.Abs() <= time.Minute, "the database is ahead by %s, and the clock differs from that by %s", ahead, off)
	}
}

func TestAReadingThatAgreesChangesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		trip, off time.Duration
		kept      bool
	}{
		"the same":                     {0, 0, true},
		"within the length of a trip":  {10 * time.Millisecond, 8 * time.Millisecond, true},
		"a millisecond is in any trip": {0, time.Millisecond, true},
		"beyond it":                    {0, 2 * time.Millisecond, false},
		"behind it":                    {0, -2 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, at := New(nil), time.Now()
			c.Set(at, at, at)
			first := c.newest.Load()
			middle := at.Add(time.Second)
			c.Set(middle.Add(tt.off), middle.Add(-tt.trip/2), middle.Add(tt.trip/2))
			kept := c.newest.Load() == first
			assert.Equal(t, tt.kept, kept, "the first reading stays")
		})
	}
}

func TestAFixedClockIsNotCorrected(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 2, 3, 4, 5, 6007, time.FixedZone("there", 3600))
	c := New(func() time.Time { return at })
	c.Set(at.Add(time.Hour), time.Now(), time.Now())
	want := time.Date(2030, 1, 2, 2, 4, 5, 6000, time.UTC)
	assert.Truef(t, c.Now() == want, "%s, not %s", c.Now(), want)
}
