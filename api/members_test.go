package api

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	testdocs "github.com/pawlhq/pawl/internal/testkit/docs"
)

// Clients read members by name: testdata/members.txt has the members of every body and answer of the table.
func TestMembers_Golden(t *testing.T) {
	all, seen := map[string]bool{}, map[reflect.Type]bool{}
	add := func(where string, t reflect.Type) {
		if t != nil && !seen[t] { // each type once, for the first route that has it
			members(all, where, t, nil)
			seen[t] = true
		}
	}
	for _, r := range Routes() {
		pattern := r.Method + " " + r.Path
		if r.Body != nil {
			add(pattern+" takes ", r.Body.Type)
		}
		for _, a := range r.Answers {
			add(fmt.Sprintf("%s %d ", pattern, a.Status), a.Type)
		}
	}
	got := strings.Join(slices.Sorted(maps.Keys(all)), "\n") + "\n"
	testdocs.File(t, "testdata/members.txt", got)
}

// members adds the JSON members of a type, as far down as they are this module's.
func members(all map[string]bool, prefix string, t reflect.Type, above []reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || !strings.Contains(t.PkgPath(), "pawl") || slices.Contains(above, t) {
		return
	}
	for _, f := range reflect.VisibleFields(t) {
		if !f.IsExported() || f.Anonymous || len(f.Index) > 1 && f.Tag.Get("json") == "" {
			continue
		}
		name := f.Tag.Get("json")
		if name == "-" {
			continue
		}
		all[prefix+name] = true
		base, _, _ := strings.Cut(name, ",")
		members(all, prefix+base+".", f.Type, append(above, t))
	}
}
