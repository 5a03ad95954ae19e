package api

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The headers of commands.
const (
	headerKey          = "Idempotency-Key"
	headerScope        = "Idempotency-Scope"
	headerNotBefore    = "Pawl-Not-Before"
	headerHappenedAt   = "Pawl-Happened-At"
	headerReason       = "Pawl-Reason"
	headerReplayFor    = "Pawl-Replay-For"
	headerTombstoneFor = "Pawl-Tombstone-For"
	headerIfMatch      = "If-Match"
	headerLastEventID  = "Last-Event-ID"
	headerReplayed     = "Idempotent-Replayed"
	headerPosition     = "Pawl-Position"
	headerDryRun       = "Pawl-Dry-Run"
	headerPrefer       = "Prefer"
	headerNoneMatch    = "If-None-Match"
	headerApplied      = "Preference-Applied"
	headerETag         = "ETag"
	headerCacheControl = "Cache-Control"
	headerLocation     = "Location"
	headerEncoding     = "Content-Encoding"
	headerRetryAfter   = "Retry-After"
)

// ofCommands are the headers that say something about one command.
var ofCommands = []string{headerKey, headerScope, headerReason, headerNotBefore, headerHappenedAt, headerIfMatch, headerReplayFor,
	headerTombstoneFor}

// single returns a header that may be given once, without the spaces around it.
func single(r *http.Request, header string) (string, error) {
	values := r.Header.Values(header)
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		return strings.TrimSpace(values[0]), nil
	default:
		return "", workflow.Errorf(workflow.InvalidRequest, "the header %s is given %d times", header, len(values))
	}
}

// keyHeader returns a header that names a key or a scope, and whether it is
// there. A quoted string (RFC 8941, section 3.3.3) and a bare one are the same
// name.
func keyHeader(r *http.Request, header string, malformed workflow.Code) (value string, given bool, err error) {
	values := r.Header.Values(header)
	if len(values) == 0 {
		return "", false, nil
	}
	if len(values) > 1 {
		return "", true, workflow.Errorf(malformed, "the header %s is given %d times", header, len(values))
	}
	if text := strings.TrimLeft(values[0], " \t"); !strings.HasPrefix(text, `"`) && strings.Contains(text, ",") {
		return "", true, workflow.Errorf(malformed,
			`the header %s is a list, which a proxy makes of a repeated header: send it once, and quote a name with a comma in it`, header)
	}
	value, ok := unquote(strings.Trim(values[0], " \t"))
	if !ok {
		return "", true, workflow.Errorf(malformed, "the header %s begins with a quote and is not a quoted string (RFC 8941)", header)
	}
	return value, true, nil
}

// unquote returns the contents of a quoted string, and any other text unchanged. It reports false for an incomplete quoted string.
func unquote(s string) (string, bool) {
	if !strings.HasPrefix(s, `"`) {
		return s, true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), i == len(s)-1
		case c == '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", false
			}
			b.WriteByte(s[i])
		case c < ' ' || c > '~':
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// forever is how a caller says it of a tombstone.
const forever = "forever"

// termsOf reads the headers that say why a command is asked, when it is to be decided, at which
// version, and for how long its key is to be good.
func termsOf(r *http.Request, cmd *transitions.Command) error {
	for _, one := range []struct {
		header string
		read   func(what, value string) error
	}{
		{headerReason, func(what, value string) (err error) {
			cmd.Reason, err = reasonOf(what, value)
			return err
		}},
		{headerNotBefore, func(what, value string) (err error) {
			cmd.NotBefore, err = scheduled(what, value, time.Now())
			return err
		}},
		{headerHappenedAt, func(what, value string) (err error) {
			cmd.HappenedAt, err = happened(what, value)
			return err
		}},
		{headerIfMatch, func(_, _ string) (err error) {
			cmd.IfVersion, err = ifMatch(r)
			return err
		}},
		{headerReplayFor, func(what, value string) error { return lasting(what, value, false, &cmd.Replay) }},
		{headerTombstoneFor, func(what, value string) error { return lasting(what, value, true, &cmd.Tombstone) }},
	} {
		value, err := single(r, one.header)
		if err == nil && len(r.Header.Values(one.header)) > 0 {
			err = one.read("the header "+one.header, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reasonOf reads a text, or a Display String, which says what a header cannot have.
func reasonOf(what, value string) (string, error) {
	if !strings.HasPrefix(value, `%"`) {
		return value, nil
	}
	text, ok := wire.ParseDisplayString(value)
	if !ok {
		return "", workflow.Errorf(workflow.InvalidRequest, `%s begins with %%" and is not a Display String (RFC 9651)`, what)
	}
	return text, nil
}

// maxSeconds is the longest time that Go can say.
const maxSeconds = int64(math.MaxInt64 / time.Second)

// lasting parses a number of seconds in digits, at least 1, or the word for an unlimited time if that is permitted.
func lasting(what, value string, endless bool, into *time.Duration) error {
	n, err := strconv.ParseUint(value, 10, 63)
	switch {
	case endless && value == forever:
		*into = workflow.Forever
	case err == nil && n >= 1 && int64(n) <= maxSeconds:
		*into = time.Duration(n) * time.Second
	case endless:
		return workflow.Errorf(workflow.InvalidRequest, "%s is not a number of seconds, from 1, nor %q", what, forever)
	default:
		return workflow.Errorf(workflow.InvalidRequest, "%s is not a number of seconds, from 1", what)
	}
	return nil
}

// happened parses the time of a past event. The year 1 is refused: many programs write it for a missing time.
func happened(what, value string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, value)
	if err != nil || at.UTC().Year() <= 1 {
		return time.Time{}, workflow.Errorf(workflow.InvalidRequest, "%s is not a time such as 2020-01-31T12:00:00Z (RFC 3339)", what)
	}
	return at.UTC().Truncate(time.Microsecond), nil
}

// maxSchedule is the maximum distance, in years, of a scheduled time from now in either direction. More is assumed to be a mistake.
const maxSchedule = 10

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
