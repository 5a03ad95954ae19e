package inspect

import (
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/schedule"
)

// Schedule is a schedule and its progress.
type Schedule struct {
	Tenant   string        `json:"tenant"`
	Name     string        `json:"name"`
	Instance uuid.UUID     `json:"instance"`
	Version  int64         `json:"version"` // of the instance
	Plan     schedule.Plan `json:"plan"`
	Paused   bool          `json:"paused,omitzero"`

	Last    time.Time `json:"last"`             // nominal time of the newest run that was submitted or left out
	Next    time.Time `json:"next,omitzero"`    // nominal time of the next run; zero if no run follows or the schedule is paused
	Waiting bool      `json:"waiting,omitzero"` // a run waits for the end of the one before
	Extra   int       `json:"extra,omitzero"`   // runs requested by trigger and backfill that are not submitted yet

	Upcoming []time.Time   `json:"upcoming,omitempty"` // nominal times of the next ten runs
	Recent   []ScheduleRun `json:"recent,omitempty"`   // the last ten, newest first
}

// ScheduleRun is a run of a schedule, or runs that were left out.
type ScheduleRun struct {
	Nominal time.Time `json:"nominal"`
	From    time.Time `json:"from,omitzero"` // nominal time of the first one, if several were left out
	At      time.Time `json:"at"`            // time of the outcome

	// Outcome is "submitted", "refused" (with the code of the refusal), "missed" or "overlap" (left out).
	Outcome string `json:"outcome"`
	Code    string `json:"code,omitzero"`

	Key      string    `json:"key,omitzero"` // idempotency key, in the scope "pawl:schedule:NAME"
	Instance uuid.UUID `json:"instance,omitzero"`
	Zones    string    `json:"zones,omitzero"` // version of the database of time zones
}

// ScheduleFilter selects schedules, by tenant and name.
type ScheduleFilter struct {
	Tenant string
	After  string // the name before the page
	Limit  int
}
