package fines

import (
	"fmt"
	"time"
)

// Date is a day in the calendar as "2006-01-02", "" for none. Written so, dates
// compare as strings do.
type Date string

// DateOf is the day of a time, in the time's own zone.
func DateOf(t time.Time) Date { return Date(t.Format(time.DateOnly)) }

// Time is the beginning of the day in UTC. It panics for what is not a date;
// every date of a validated payload is one.
func (d Date) Time() time.Time {
	t, err := time.Parse(time.DateOnly, string(d))
	if err != nil {
		panic(fmt.Sprintf("fines: %q is not a date", string(d)))
	}
	return t
}

// Add returns the day so many days later. It panics as Time does.
func (d Date) Add(days int) Date { return DateOf(d.Time().AddDate(0, 0, days)) }
