package api

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// forever is how a caller says it of a tombstone.
const forever = "forever"

// keepFor reads the headers that say for how long a command's key is to be good.
func keepFor(r *http.Request, cmd *transitions.Command) error {
	for _, one := range []struct {
		header string
		into   *time.Duration
	}{{headerReplayFor, &cmd.Replay}, {headerTombstoneFor, &cmd.Tombstone}} {
		value, err := single(r, one.header)
		if err != nil {
			return err
		}
		if len(r.Header.Values(one.header)) == 0 {
			continue
		}
		if *one.into, err = lasting("the header "+one.header, value, one.header == headerTombstoneFor); err != nil {
			return err
		}
	}
	return nil
}

// keepFor reads the members that say it in a bulk request.
func (in *BulkCommand) keepFor(cmd *transitions.Command) (err error) {
	if in.ReplayFor != nil {
		if cmd.Replay, err = lasting("replay_for", string(in.ReplayFor), false); err != nil {
			return err
		}
	}
	if in.TombstoneFor != nil {
		text := string(in.TombstoneFor)
		if text == `"`+forever+`"` {
			text = forever
		}
		cmd.Tombstone, err = lasting("tombstone_for", text, true)
	}
	return err
}

// lasting reads a number of seconds in digits, from 1, or the word for ever where the time
// may be endless.
func lasting(what, value string, endless bool) (time.Duration, error) {
	if endless && value == forever {
		return workflow.Forever, nil
	}
	n, err := strconv.ParseUint(value, 10, 63)
	switch {
	case err == nil && n >= 1 && n <= uint64(math.MaxInt64/time.Second):
		return time.Duration(n) * time.Second, nil
	case endless:
		return 0, workflow.Errorf(workflow.InvalidRequest, "%s is not a number of seconds, from 1, nor %q", what, forever)
	}
	return 0, workflow.Errorf(workflow.InvalidRequest, "%s is not a number of seconds, from 1", what)
}

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
