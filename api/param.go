package api

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/api/internal/parse"
	"github.com/pawlhq/pawl/api/internal/stream"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Param is a parameter of a request: a part of its path or query, or a header.
type Param struct {
	Name     string // one that ends in "." stands for all that begin with it
	In       Place
	Kind     Kind
	Min, Max int64    // of an integer; Max is also the longest text in bytes, 0 for maxText
	Values   []string // of a text: what it can be; nil: anything
	Default  string   // what counts without it
	Many     int      // how often it may be given; 0 is once
	Suffixes []string // of one that stands for many: what the name of each may end in besides
	Required bool
	Needs    string // another parameter of the query, which has to be given with it
	Grant    Grant  // what it takes to say true
	Believed bool   // it counts only where a caller is believed, without a credential
	Doc      string
}

// Place is where a parameter stands.
type Place string

// The places.
const (
	InPath   Place = "path"
	InQuery  Place = "query"
	InHeader Place = "header"
)

// Kind is what the text of a parameter means.
type Kind string

// The kinds.
const (
	Text     Kind = "text"
	Integer  Kind = "integer"
	Boolean  Kind = "boolean"
	Time     Kind = "time" // RFC 3339
	UUID     Kind = "UUID"
	Position Kind = "position" // of the log, or "start" or "now"
	Scope    Kind = "scope"    // as transitions.CheckScope has it
	Key      Kind = "key"      // as transitions.CheckKey has it
	Known    Kind = "known"    // a name that the node is configured with; it has no other
)

const (
	// maxText is the longest name, state or attribute value in bytes that a query
	// may ask for.
	maxText = 255
	// maxCursor is the longest cursor.
	maxCursor = 1024
	// maxPosition is the largest position or version.
	maxPosition = math.MaxInt64
)

// family reports whether it stands for many.
func (p *Param) family() bool { return strings.HasSuffix(p.Name, ".") }

func (p *Param) is(name string) bool {
	if p.family() {
		return len(name) > len(p.Name) && strings.HasPrefix(name, p.Name)
	}
	return name == p.Name
}

// check refuses a value that cannot be. Name is the one that the caller has given.
func (p *Param) check(name, value string) error {
	switch p.Kind {
	case Known:
		return nil
	case Scope:
		return transitions.CheckScope(value)
	case Key:
		return transitions.CheckKey(value)
	case UUID:
		_, err := parse.ID(value)
		return err
	}
	what := "query parameter " + strconv.Quote(parse.Shown(name))
	if p.In == InPath {
		what = "the " + spoken(name) + " in the path"
	}
	limit := maxText
	if p.Kind == Text && p.Max > 0 {
		limit = int(p.Max)
	}
	problem := transitions.TextProblem(value, limit)
	if problem == "" {
		problem = p.problem(value)
	}
	if problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "%s %s", what, problem)
	}
	return nil
}

// problem says why a text does not mean what the kind says, or "".
func (p *Param) problem(value string) string {
	switch p.Kind {
	case Text:
		if p.Values != nil && !slices.Contains(p.Values, value) {
			return "is not " + orList(p.Values)
		}
	case Integer:
		if _, ok := p.integer(value); !ok && p.Max == maxPosition {
			return fmt.Sprintf("is not an integer from %d on", p.Min)
		} else if !ok {
			return fmt.Sprintf("is not an integer from %d to %d", p.Min, p.Max)
		}
	case Boolean:
		if value != "true" && value != "false" {
			return "is neither true nor false"
		}
	case Time:
		if t, ok := parseTime(value); !ok || t.UTC().Year() < 1 || t.UTC().Year() > 9999 {
			return noTime
		}
	case Position:
		if _, ok := stream.ParseStart(value); !ok {
			return `is not a position, "start" or "now"`
		}
	}
	return ""
}

func (p *Param) integer(s string) (int64, bool) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err == nil && int64(n) >= p.Min && int64(n) <= p.Max
}

func parseTime(s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, s)
	return t, err == nil
}

const noTime = `is not a time such as 2030-01-31T12:00:00Z (RFC 3339; a "+" in it is written %2B)`

func spoken(name string) string { return strings.ReplaceAll(name, "_", " ") }

// orList says "a, b or c".
func orList(names []string) string {
	n := len(names) - 1
	if n < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:n], ", ") + " or " + names[n]
}
