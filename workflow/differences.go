package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// maxDifferences is how many differences of two definitions are listed.
const maxDifferences = 10

// Differences compares the workflow with a stored description in JSON. It returns the states, transitions and timers that are new, gone or
// changed, and the changed member of each, at most ten and the number of further ones. Members outside of the hash are ignored. It returns
// none if only something has changed that descriptions do not contain.
func (w *Workflow) Differences(stored []byte) ([]string, error) {
	text, err := json.Marshal(w.Describe())
	if err != nil {
		return nil, fmt.Errorf("describe workflow %q: %w", w.Name, err)
	}
	var before, after map[string]any
	if err := json.Unmarshal(stored, &before); err != nil {
		return nil, fmt.Errorf("the stored description of workflow %q: %w", w.Name, err)
	}
	if err := json.Unmarshal(text, &after); err != nil {
		return nil, fmt.Errorf("describe workflow %q: %w", w.Name, err)
	}
	var found differences
	found.members("", before, after)
	if more := len(found) - maxDifferences; more > 0 {
		found = append(found[:maxDifferences], fmt.Sprintf("%d more", more))
	}
	return found, nil
}

type differences []string

func (d *differences) add(format string, args ...any) { *d = append(*d, fmt.Sprintf(format, args...)) }

// unhashed are the members of descriptions that are not part of the hash.
var unhashed = []string{"attributes", "receives"}

// members compares objects. A path starts with the name of an element and continues with its members.
func (d *differences) members(path string, before, after map[string]any) {
	names := slices.Sorted(maps.Keys(before))
	for name := range after {
		if _, both := before[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if slices.Contains(unhashed, name) && !strings.Contains(path, "payload") {
			continue
		}
		d.value(step(path, name), before[name], after[name])
	}
}

// step returns the path of a member. The members of a payload's schema are named as in the payload.
func step(path, name string) string {
	switch {
	case path == "":
		return name
	case name == "properties":
		return path
	case strings.HasSuffix(path, `"`): // of something with a name
		return path + ": " + name
	}
	return path + "/" + name
}

func (d *differences) value(path string, before, after any) {
	if one := singular[path]; one != "" {
		b, _ := before.([]any)
		a, _ := after.([]any)
		d.named(one, byName(b), byName(a))
		return
	}
	if b, ok := before.(map[string]any); ok {
		if a, ok := after.(map[string]any); ok {
			d.members(path, b, a)
			return
		}
	}
	was, is := shown(before), shown(after)
	switch {
	case was == is:
	case before == nil:
		d.add("%s is new: %s", path, is)
	case after == nil:
		d.add("%s is gone: %s", path, was)
	default:
		d.add("%s was %s, is %s", path, was, is)
	}
}

// singular names an element of the lists whose elements have names.
var singular = map[string]string{"states": "state", "transitions": "transition", "timers": "timer"}

func (d *differences) named(what string, before, after []element) {
	order := func(list, in []element) (names []string) {
		for _, e := range list {
			if slices.ContainsFunc(in, func(other element) bool { return other.name == e.name }) {
				names = append(names, e.name)
			}
		}
		return names
	}
	for _, b := range before {
		path := fmt.Sprintf("%s %q", what, b.name)
		if at := slices.IndexFunc(after, func(a element) bool { return a.name == b.name }); at >= 0 {
			d.members(path, b.members, after[at].members)
		} else {
			d.add("%s is gone", path)
		}
	}
	for _, a := range after {
		if !slices.ContainsFunc(before, func(b element) bool { return b.name == a.name }) {
			d.add("%s %q is new", what, a.name)
		}
	}
	if was, is := order(before, after), order(after, before); !slices.Equal(was, is) {
		d.add("the order of the %ss was %s, is %s", what, strings.Join(was, ", "), strings.Join(is, ", "))
	}
}

// element is one of a list whose elements have names. Of several transitions with one name, the later ones are told apart by a number.
type element struct {
	name    string
	members map[string]any
}

func byName(list []any) (elements []element) {
	seen := map[string]int{}
	for _, one := range list {
		members, _ := one.(map[string]any)
		name, _ := members["name"].(string)
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s (%d)", name, seen[name])
		}
		elements = append(elements, element{name, members})
	}
	return elements
}

// shown returns a value as short text.
func shown(v any) string {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return "?"
	}
	if short := []rune(string(text)); len(short) > 100 {
		return string(short[:100]) + "…"
	}
	return string(text)
}
