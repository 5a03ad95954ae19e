package workflow

import (
	"cmp"
	"math"
	"time"
)

// Horizons are the retention periods of the keys of a workflow's commands. An answer is replayed for the first period. Then it is replaced
// by a tombstone, which refuses the key for the second. After that the key is new.
//
// They are not part of the definition's hash: they may change within a version, and the newest version on a node counts. The period of
// refusal only grows: the longest one with which any node has started counts.
type Horizons struct {
	// Replay is how long an answer is replayed, from its creation. Defaults to the engine's, 24 hours. A caller's command that has been due
	// for longer without being executed is abandoned, except those of messages; see [CommandAbandoned].
	Replay time.Duration
	// MaxReplay is the most that a command may ask for. Default: 30 days, or Replay
	// where that is more.
	MaxReplay time.Duration
	// Tombstone is how long the key is refused after that; of a message, at least 30
	// days. Default: 30 days; it may be Forever.
	Tombstone time.Duration
	// MaxTombstone is the most that a command may ask for. Default: 365 days, or
	// Tombstone where that is more; it may be Forever.
	MaxTombstone time.Duration
	// History is how long finished commands are kept in the table command_history,
	// from when their answer has expired, at least. Default: they are not; it may be Forever.
	History time.Duration
}

// Forever is a horizon that is never reached.
const Forever time.Duration = math.MaxInt64

const (
	day                 = 24 * time.Hour
	defaultMaxReplay    = 30 * day
	defaultTombstone    = 30 * day
	defaultMaxTombstone = 365 * day
)

// Keep sets the retention periods of the workflow's keys. Without it the defaults apply. A message that the workflow receives is such a
// command too, but its key is refused for at least 30 days after its answer has expired, even if Tombstone is less. A sender that may
// repeat it later than that needs more.
func (d *Definition[D]) Keep(h Horizons) *Definition[D] {
	d.horizons = h
	return d
}

// Resolve returns the horizons with every default filled in. replay is how long
// an answer is replayed where they do not say it.
func (h Horizons) Resolve(replay time.Duration) Horizons {
	h.Replay = cmp.Or(h.Replay, replay)
	h.MaxReplay = cmp.Or(h.MaxReplay, max(defaultMaxReplay, h.Replay))
	h.Tombstone = cmp.Or(h.Tombstone, defaultTombstone)
	h.MaxTombstone = cmp.Or(h.MaxTombstone, max(defaultMaxTombstone, h.Tombstone))
	return h
}

func (h Horizons) check(m *Mistakes) {
	for _, one := range []struct {
		name        string
		value, most time.Duration
	}{{"Replay", h.Replay, h.MaxReplay}, {"Tombstone", cmp.Or(h.Tombstone, defaultTombstone), h.MaxTombstone}, {"History", h.History, 0}} {
		if one.value < 0 || one.most < 0 {
			m.add("the horizon %s, or its Max, is negative", one.name)
		} else if one.value > 0 && one.value < time.Microsecond {
			m.add("the horizon %s is shorter than a microsecond, which is as exact as the database is", one.name)
		} else if one.most != 0 && one.most < one.value {
			m.add("the horizon %s is %s, and its Max is less: %s", one.name, one.value, one.most)
		}
	}
}
