package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Next returns the first nominal time after the given one, or zero if no time follows.
func (t *Times) Next(after time.Time) time.Time {
	if from := t.spec.From; !from.IsZero() && after.Before(from) {
		after = from.Add(-1)
	}
	next := t.next(after.UTC())
	if next.IsZero() || !t.spec.Until.IsZero() && !next.Before(t.spec.Until) {
		return time.Time{}
	}
	return next
}

func (t *Times) next(after time.Time) time.Time {
	if t.fields == nil {
		return t.nextInterval(after)
	}
	from := after.Truncate(time.Second).Add(time.Second)
	for limit := from.AddDate(41, 0, 0); from.Before(limit); {
		begin, end := from.In(t.zone).ZoneBounds()
		next := t.inSegment(from, begin, end)
		if !next.IsZero() && (end.IsZero() || next.Before(end)) {
			return next.UTC()
		}
		if end.IsZero() {
			return time.Time{}
		}
		from = end.UTC()
	}
	return time.Time{}
}

func (t *Times) nextInterval(after time.Time) time.Time {
	anchor := t.spec.From
	if anchor.IsZero() {
		anchor = time.Unix(0, 0)
	}
	passed := after.Unix() - anchor.Unix()
	if !after.Truncate(time.Second).Equal(after) && after.Nanosecond() < anchor.Nanosecond() {
		passed--
	}
	steps := passed / t.spec.Every
	if passed%t.spec.Every < 0 {
		steps--
	}
	next := time.Unix(anchor.Unix()+steps*t.spec.Every, int64(anchor.Nanosecond()))
	for !next.After(after) {
		next = next.Add(time.Duration(t.spec.Every) * time.Second)
	}
	return next.UTC()
}

// inSegment returns the first time at or after from of the part of the zone's history from begin to end, in which the offset is the same.
// The time can be after the end; then it is not a time of the zone.
func (t *Times) inSegment(from, begin, end time.Time) time.Time {
	offset := offsetAt(from.In(t.zone))
	if begin.IsZero() {
		return t.search(from, offset)
	}
	before := offsetAt(begin.Add(-1).In(t.zone))
	if before > offset && !t.both { // the clocks went back: the times until begin+before have been
		if repeated := begin.Add(before - offset); from.Before(repeated) {
			from = repeated
		}
	}
	next := t.search(from, offset)
	if gap := offset - before; gap > 0 && t.spec.Gap != "skip" && from.Before(begin.Add(gap)) {
		if shifted := t.search(from, before); !shifted.IsZero() && shifted.Before(begin.Add(gap)) &&
			(next.IsZero() || shifted.Before(next)) {
			return shifted
		}
	}
	return next
}

// search returns the first time at or after from that matches on clocks with an offset.
func (t *Times) search(from time.Time, offset time.Duration) time.Time {
	civil := t.searchFrom(from.UTC().Add(offset))
	if civil.IsZero() {
		return civil
	}
	return civil.Add(-offset)
}

func offsetAt(at time.Time) time.Duration {
	_, seconds := at.Zone()
	return time.Duration(seconds) * time.Second
}

// Last returns the newest nominal time after one time and not after another, or zero.
func (t *Times) Last(after, until time.Time) time.Time {
	if list := t.newest(after, until, 1); len(list) > 0 {
		return list[0]
	}
	return time.Time{}
}

// maxLook ends the search of newest in steps.
const maxLook = 50 * 366 * 24 * time.Hour

// Delay returns the delay of a run of the named schedule, by its jitter.
func (t *Times) Delay(name string, nominal time.Time) time.Duration {
	if t.spec.Jitter == 0 {
		return 0
	}
	sum := sha256.Sum256(nominal.UTC().AppendFormat([]byte(name+" "), time.RFC3339Nano))
	most := uint64(t.spec.Jitter) * uint64(time.Second/time.Millisecond)
	return time.Duration(binary.BigEndian.Uint64(sum[:])%most) * time.Millisecond
}
