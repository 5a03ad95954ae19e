package api

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/workflow"
)

func TestContentType(t *testing.T) {
	for value, want := range map[string]string{
		"application/json": mediaJSON, "Application/JSON; charset=UTF-8": mediaJSON, "application/x-ndjson": mediaNDJSON,
		"": "", "text/plain": "", "application/json; charset=latin1": "", "application/x-www-form-urlencoded": "",
		"multipart/form-data; boundary=x": "", "application/json, text/plain": "", "json": "", "application/jsonp": "",
	} {
		got, err := contentType(requestWith("Content-Type", value), mediaJSON, mediaNDJSON)
		assert.Truef(t, got == want && (want == "") == errors.Is(err, &workflow.Error{Code: workflow.UnsupportedMedia}),
			"Content-Type %q: %q, %v; want %q", value, got, err, want)
	}
	_, err := contentType(requestWith("Content-Type", mediaNDJSON), mediaJSON)
	assert.Error(t, err, "NDJSON was taken for a single command")
}
