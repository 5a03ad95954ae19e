package schedule

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // for systems without a database of time zones

	"github.com/robfig/cron/v3"
)

// Spec says when a schedule runs. Exactly one of Cron and Every is set.
type Spec struct {
	// Cron is an expression with five fields (minute, hour, day of month, month, day of week), six with seconds before them, or @hourly,
	// @daily, @weekly, @monthly, @yearly.
	Cron string `json:"cron,omitzero" validate:"max=200"`

	// Every is the interval in seconds, counted from From, otherwise from 1970-01-01T00:00:00Z.
	Every int64 `json:"every_seconds,omitzero" validate:"gte=0,lte=315360000"`

	// Days says how the day of month and the day of week of Cron combine when both are restricted: "either" (as cron does) or "both".
	// Defaults to "either".
	Days string `json:"days,omitzero" validate:"omitempty,oneof=either both"`

	// Working restricts the days of Cron to working days.
	Working *Working `json:"working,omitzero"`

	// Zone is the IANA name of the time zone in which Cron is read. Defaults to UTC.
	Zone string `json:"zone,omitzero" validate:"max=64"`

	// Gap says what happens to a time that a zone skips when its clocks go forward: "shift" moves it by the length of the gap (02:30
	// becomes 03:30), "skip" leaves it out. Defaults to "shift".
	Gap string `json:"gap,omitzero" validate:"omitempty,oneof=shift skip"`

	// Fold says when a time runs that a zone has twice when its clocks go back: "first" or "both". Defaults to "first", and to "both" if
	// the hour field of Cron is *.
	Fold string `json:"fold,omitzero" validate:"omitempty,oneof=first both"`

	// From and Until bound the runs. From is included, Until is not. Zero means no bound.
	From  time.Time `json:"from,omitzero"`
	Until time.Time `json:"until,omitzero"`

	// Jitter delays each run by up to this number of seconds. The delay is derived from the name of the schedule and the nominal time, so
	// every node computes the same.
	Jitter int64 `json:"jitter_seconds,omitzero" validate:"gte=0,lte=86400"`
}

// Working selects working days.
type Working struct {
	// Calendar names a calendar of the program, see [Calendars]. Defaults to Monday to Friday.
	Calendar string `json:"calendar,omitzero" validate:"max=64"`

	// Nth selects a working day of each month: 1 is the first, -1 the last. The day fields of Cron must be * then.
	Nth int `json:"nth,omitzero" validate:"gte=-23,lte=23"`

	// Roll says what happens to a day that is not a working day: "skip" leaves it out, "next" and "previous" move the run to the nearest
	// working day. Defaults to "skip".
	Roll string `json:"roll,omitzero" validate:"omitempty,oneof=skip next previous"`
}

// Calendars are the calendars of working days of a program, by name. A function reports whether a date is a working day; it is called with
// midnight UTC, and must always return the same for a date.
type Calendars map[string]func(date time.Time) bool

// Weekdays reports whether a date is one of Monday to Friday.
func Weekdays(date time.Time) bool {
	return date.Weekday() != time.Saturday && date.Weekday() != time.Sunday
}

// Times computes the nominal times of a Spec. It is safe for concurrent use.
type Times struct {
	spec     Spec
	fields   *cron.SpecSchedule // nil: an interval
	zone     *time.Location
	working  func(date time.Time) bool
	both     bool // fold
	bothDays bool
}

// starBit marks a field of package cron that is *.
const starBit = 1 << 63

var parser = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Times checks the spec.
func (s Spec) Times(calendars Calendars) (*Times, error) {
	t := &Times{spec: s, working: Weekdays, bothDays: s.Days == "both"}
	if (s.Cron == "") == (s.Every == 0) {
		return nil, errors.New("give either cron or every_seconds")
	}
	if !s.Until.IsZero() && !s.From.Before(s.Until) {
		return nil, errors.New("from is not before until")
	}
	if s.Every != 0 {
		if s.Every < 0 || s.Zone != "" || s.Working != nil || s.Gap != "" || s.Fold != "" || s.Days != "" {
			return nil, errors.New("an interval is positive and takes no zone, gap, fold, days or working days")
		}
		return t, nil
	}
	var err error
	if t.zone, err = zone(s.Zone); err != nil {
		return nil, err
	}
	if strings.Contains(s.Cron, "=") || strings.HasPrefix(s.Cron, "@every") {
		return nil, errors.New("cron has a time zone or an interval; use zone and every_seconds")
	}
	parsed, err := parser.Parse(s.Cron)
	if err != nil {
		return nil, fmt.Errorf("cron %q: %w", s.Cron, err)
	}
	t.fields = parsed.(*cron.SpecSchedule)
	t.both = s.Fold == "both" || s.Fold == "" && t.fields.Hour&starBit != 0
	if s.Working != nil {
		if err := t.setWorking(*s.Working, calendars); err != nil {
			return nil, err
		}
	}
	if t.searchFrom(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("cron %q never runs", s.Cron)
	}
	return t, nil
}

func (t *Times) setWorking(w Working, calendars Calendars) error {
	if w.Calendar != "" {
		if t.working = calendars[w.Calendar]; t.working == nil {
			return fmt.Errorf("calendar %q is not in schedule.Calendars of this program; add it", w.Calendar)
		}
	}
	if w.Nth != 0 && (t.fields.Dom&starBit == 0 || t.fields.Dow&starBit == 0 || w.Roll != "") {
		return errors.New("nth needs * as day of month and day of week, and no roll")
	}
	return nil
}

// zone returns a time zone. Local is refused, because nodes can have different ones.
func zone(name string) (*time.Location, error) {
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil
	}
	if name == "Local" {
		return nil, errors.New("the zone must be an IANA name such as Europe/Berlin")
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("zone %q is not in the database of time zones: %w", name, err)
	}
	zones.Store(name, loc)
	return loc, nil
}

// zones holds the zones that were used, because time.LoadLocation reads a file each time.
var zones sync.Map
