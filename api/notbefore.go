package api

import (
	"net/http"
	"time"

	"github.com/pawlhq/pawl/workflow"
)

// maxSchedule is how many years away from now a command may be scheduled. What
// is further away, in either direction, is somebody's mistake.
const maxSchedule = 10

// notBefore returns when the header says that the command is to be decided, the
// zero time without one.
func notBefore(r *http.Request) (time.Time, error) {
	if len(r.Header.Values(headerNotBefore)) == 0 {
		return time.Time{}, nil
	}
	value, err := single(r, headerNotBefore)
	if err != nil {
		return time.Time{}, err
	}
	return scheduled("the header "+headerNotBefore, value, time.Now())
}

// scheduled reads a time at which a command is to be decided, in the precision
// in which it is stored.
func scheduled(what, value string, now time.Time) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return time.Time{}, workflow.Errorf(workflow.InvalidRequest, "%s is not a time such as 2030-01-31T12:00:00Z (RFC 3339)", what)
	}
	if at.Before(now.AddDate(-maxSchedule, 0, 0)) || at.After(now.AddDate(maxSchedule, 0, 0)) {
		return time.Time{}, workflow.Errorf(workflow.InvalidRequest, "%s is more than %d years away", what, maxSchedule)
	}
	return at.UTC().Truncate(time.Microsecond), nil
}
