package api

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/members.txt")

// What clients read by its name keeps its name: the members of every body and answer
// of the table, as testdata/members.txt has them.
func TestMembersOfBodiesAndAnswersKeepTheirNames(t *testing.T) {
	const path = "testdata/members.txt"
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
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what the types say; if that is meant, run go test ./api -run Members -update", path)
	}
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
		all[prefix+name] = true
		base, _, _ := strings.Cut(name, ",")
		members(all, prefix+base+".", f.Type, append(above, t))
	}
}
