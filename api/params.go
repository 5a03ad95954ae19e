package api

import (
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

const (
	// maxText is the longest name, state or attribute value in bytes that a query
	// may ask for.
	maxText = 255
	// maxCursor is the longest cursor.
	maxCursor = 1024
)

// pathText returns a part of the path, percent-decoded.
func pathText(r *http.Request, name string) (string, error) {
	value := r.PathValue(name)
	if value == "" {
		return "", workflow.Errorf(workflow.InvalidRequest, "the %s in the path is empty", spoken(name))
	}
	if problem := transitions.TextProblem(value, maxText); problem != "" {
		return "", workflow.Errorf(workflow.InvalidRequest, "the %s in the path %s", spoken(name), problem)
	}
	return value, nil
}

func spoken(name string) string { return strings.ReplaceAll(name, "_", " ") }

// pathID returns the instance that the path names.
func pathID(r *http.Request) (uuid.UUID, error) { return parseID(r.PathValue("id")) }

// parseID accepts the one form in which ids are written: 36 characters.
func parseID(s string) (uuid.UUID, error) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 || id == uuid.Nil {
		return uuid.Nil, workflow.Errorf(workflow.InvalidRequest, "the instance's id is not a UUID")
	}
	return id, nil
}

// query is the parameters of a request, the first of each.
type query map[string]string

// queryOf reads the parameters and refuses one that the endpoint does not know,
// that is given twice or that could not be stored. A known name that ends in
// "." stands for all names that begin with it, and one that ends in "*" may be given
// several times.
func queryOf(r *http.Request, known ...string) (query, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, workflow.Errorf(workflow.InvalidRequest, "the query is not well-formed")
	}
	q := make(query, len(values))
	for name, vs := range values {
		several := slices.Contains(known, name+"*")
		isKnown := several || slices.ContainsFunc(known, func(k string) bool {
			if strings.HasSuffix(k, ".") {
				return len(name) > len(k) && strings.HasPrefix(name, k)
			}
			return name == k
		})
		if !isKnown {
			return nil, workflow.Errorf(workflow.InvalidRequest, "unknown query parameter %q", shown(name))
		}
		if len(vs) > 1 && !several {
			return nil, workflow.Errorf(workflow.InvalidRequest, "query parameter %q is given %d times", shown(name), len(vs))
		}
		if problem := transitions.TextProblem(name, maxText); problem != "" {
			return nil, workflow.Errorf(workflow.InvalidRequest, "the name of a query parameter %s", problem)
		}
		limit := maxText
		if name == "cursor" {
			limit = maxCursor
		}
		for _, v := range vs {
			if problem := transitions.TextProblem(v, limit); problem != "" {
				return nil, workflow.Errorf(workflow.InvalidRequest, "query parameter %q %s", name, problem)
			}
		}
		q[name] = vs[0]
	}
	return q, nil
}

// filtersOf reads the parameters of a list as queryOf does, in which an empty value is
// none: an empty cursor is that of the first page, as "next" is after the last. Only
// an attribute may be asked for by an empty value, which it can have.
func filtersOf(r *http.Request, known ...string) (query, error) {
	q, err := queryOf(r, known...)
	maps.DeleteFunc(q, func(name, value string) bool { return value == "" && !strings.HasPrefix(name, attributePrefix) })
	return q, err
}

// shown is a caller's text as it may stand in a message.
func shown(s string) string {
	const limit = 64
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}

// integer returns a parameter between low and high, or otherwise when it is not
// given.
func (q query) integer(name string, otherwise, low, high int64) (int64, error) {
	s, given := q[name]
	if !given {
		return otherwise, nil
	}
	digits, err := strconv.ParseUint(s, 10, 63)
	n := int64(digits)
	if err != nil || n < low || n > high {
		if high == maxPosition {
			return 0, workflow.Errorf(workflow.InvalidRequest, "query parameter %q is not an integer from %d on", name, low)
		}
		return 0, workflow.Errorf(workflow.InvalidRequest, "query parameter %q is not an integer from %d to %d", name, low, high)
	}
	return n, nil
}

// instance returns the id of an instance, zero when it is not given.
func (q query) instance() (uuid.UUID, error) {
	s, given := q["instance"]
	if !given {
		return uuid.Nil, nil
	}
	return parseID(s)
}

// attributePrefix begins the query parameters that filter by an attribute.
const attributePrefix = "attr."

// attributes returns what the parameters say of attributes, nil for nothing.
func (q query) attributes() (all map[string]string) {
	for name, value := range q {
		if attribute, is := strings.CutPrefix(name, attributePrefix); is {
			if all == nil {
				all = map[string]string{}
			}
			all[attribute] = value
		}
	}
	return all
}

// flag returns a parameter that is true or false.
func (q query) flag(name string) (bool, error) {
	switch s, given := q[name]; {
	case !given || s == "false":
		return false, nil
	case s == "true":
		return true, nil
	default:
		return false, workflow.Errorf(workflow.InvalidRequest, "query parameter %q is neither true nor false", name)
	}
}

// choice returns a parameter that is true or false, nil where it is not given.
func (q query) choice(name string) (*bool, error) {
	if _, given := q[name]; !given {
		return nil, nil
	}
	b, err := q.flag(name)
	return &b, err
}

// time returns a parameter that is a time, the zero time where it is not given.
func (q query) time(name string) (t time.Time, err error) {
	s, given := q[name]
	if !given {
		return t, nil
	}
	if t, err = time.Parse(time.RFC3339Nano, s); err != nil || t.UTC().Year() < 1 || t.UTC().Year() > 9999 || t.IsZero() {
		return t, errNoTime(name)
	}
	return t, nil
}

func errNoTime(name string) error {
	return workflow.Errorf(workflow.InvalidRequest,
		`query parameter %q is not a time such as 2030-01-31T12:00:00Z (RFC 3339; a "+" in it is written %%2B)`, name)
}

// definition returns the version of a definition, 0 where it is not given.
func (q query) definition() (int, error) {
	n, err := q.integer("definition", 0, 1, math.MaxInt32)
	return int(n), err
}

// Page sizes, in entries.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

func (q query) limit() (int, error) {
	n, err := q.integer("limit", defaultLimit, 1, maxLimit)
	return int(n), err
}

// whose are the numbers that an operator wants: the caller's tenant's, or, for "",
// everybody's.
func (q query) whose(c Caller) (string, error) {
	all, err := q.flag("all_tenants")
	if err != nil || !all {
		return c.Tenant, err
	}
	return "", c.operatesAll()
}
