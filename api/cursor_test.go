package api_test

import (
	"regexp"
	"testing"
)

func TestAnEmptyCursorIsTheFirstPage(t *testing.T) {
	s, _ := withSinks(t)
	lease := regexp.MustCompile(`"lease_ends":"[^"]*"`) // it moves
	for _, path := range []string{"/v1/instances", "/v1/ops/stuck", "/v1/ops/commands", "/v1/ops/paused",
		"/v1/ops/inbox", "/v1/ops/sinks/main", "/v1/ops/sinks/main/dead"} {
		first, empty := s.get(path), s.get(path+"?cursor=")
		if empty.want(t, 200); lease.ReplaceAllString(string(first.body), "") != lease.ReplaceAllString(string(empty.body), "") {
			t.Errorf("%s: %s, and with an empty cursor %s", path, first.body, empty.body)
		}
	}
}
