package schedule

import (
	"math/bits"
	"time"
)

// Civil times are times of a clock on the wall, represented as UTC.

// maxDays bounds a search: 29 February on a given day of the week can be 40 years away.
const maxDays = 41 * 366

// maxRoll is the maximum number of days between a date and the working day to which it moves.
const maxRoll = 31

// searchFrom returns the first civil time at or after from that matches, or zero.
func (t *Times) searchFrom(from time.Time) time.Time {
	y, m, d := from.Date()
	day := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	first := from.Sub(day)
	if first%time.Second != 0 {
		first = first.Truncate(time.Second) + time.Second
	}
	for range maxDays {
		if at, ok := t.timeOfDay(first); ok && t.runsOn(day) {
			return day.Add(at)
		}
		day, first = day.AddDate(0, 0, 1), 0
		if t.spec.Working == nil && t.fields.Month&(1<<uint(day.Month())) == 0 {
			day = time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		}
	}
	return time.Time{}
}

// timeOfDay returns the first time of day at or after from.
func (t *Times) timeOfDay(from time.Duration) (time.Duration, bool) {
	h, m, s := int(from/time.Hour), int(from/time.Minute%60), int(from/time.Second%60)
	for h < 24 {
		hour, ok := nextBit(t.fields.Hour, h)
		if !ok {
			return 0, false
		}
		if hour > h {
			h, m, s = hour, 0, 0
		}
		for m < 60 {
			minute, ok := nextBit(t.fields.Minute, m)
			if !ok {
				break
			}
			if minute > m {
				m, s = minute, 0
			}
			if second, ok := nextBit(t.fields.Second, s); ok {
				return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(second)*time.Second, true
			}
			m, s = m+1, 0
		}
		h, m, s = h+1, 0, 0
	}
	return 0, false
}

// nextBit returns the first bit that is set at or after from.
func nextBit(field uint64, from int) (int, bool) {
	rest := field &^ starBit >> uint(from)
	if from >= 60 || rest == 0 {
		return 0, false
	}
	return from + bits.TrailingZeros64(rest), true
}

// runsOn reports whether the schedule runs on a date.
func (t *Times) runsOn(day time.Time) bool {
	w := t.spec.Working
	switch {
	case w == nil:
		return t.matches(day)
	case !t.working(day):
		return false
	case w.Nth != 0:
		return t.fields.Month&(1<<uint(day.Month())) != 0 && t.nth(day, w.Nth)
	case t.matches(day):
		return true
	case w.Roll == "next":
		return t.rolled(day, -1)
	case w.Roll == "previous":
		return t.rolled(day, 1)
	}
	return false
}

// rolled reports whether one of the days without work on one side of a working day matches.
func (t *Times) rolled(day time.Time, step int) bool {
	for range maxRoll {
		if day = day.AddDate(0, 0, step); t.working(day) {
			return false
		}
		if t.matches(day) {
			return true
		}
	}
	return false
}

// nth reports whether a working day is the nth of its month, from the end if n is negative.
func (t *Times) nth(day time.Time, n int) bool {
	step, left := -1, n
	if n < 0 {
		step, left = 1, -n
	}
	for d := day; d.Month() == day.Month(); d = d.AddDate(0, 0, step) {
		if t.working(d) {
			left--
		}
	}
	return left == 0
}

// matches reports whether the date matches the fields of the expression.
func (t *Times) matches(day time.Time) bool {
	f := t.fields
	if f.Month&(1<<uint(day.Month())) == 0 {
		return false
	}
	dom, dow := f.Dom&(1<<uint(day.Day())) != 0, f.Dow&(1<<uint(day.Weekday())) != 0
	if t.bothDays || f.Dom&starBit != 0 || f.Dow&starBit != 0 {
		return dom && dow
	}
	return dom || dow
}
