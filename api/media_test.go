package api

import (
	"errors"
	"testing"

	"github.com/pawlhq/pawl/workflow"
)

func TestContentType(t *testing.T) {
	for value, want := range map[string]string{
		"application/json": mediaJSON, "Application/JSON; charset=UTF-8": mediaJSON, "application/x-ndjson": mediaNDJSON,
		"": "", "text/plain": "", "application/json; charset=latin1": "", "application/x-www-form-urlencoded": "",
		"multipart/form-data; boundary=x": "", "application/json, text/plain": "", "json": "", "application/jsonp": "",
	} {
		got, err := contentType(requestWith("Content-Type", value), mediaJSON, mediaNDJSON)
		if got != want || (want == "") != errors.Is(err, &workflow.Error{Code: workflow.UnsupportedMedia}) {
			t.Errorf("Content-Type %q: %q, %v; want %q", value, got, err, want)
		}
	}
	if _, err := contentType(requestWith("Content-Type", mediaNDJSON), mediaJSON); err == nil {
		t.Error("NDJSON was taken for a single command")
	}
}
