package api

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAcceptPrefersByWeightAndThenByOffer(t *testing.T) {
	for header, want := range map[string]string{
		"":                  mediaJSON,
		"*/*":               mediaJSON,
		"text/event-stream": mediaEventStream,
		"TEXT/Event-Stream": mediaEventStream,
		"application/json;q=0.5, text/event-stream": mediaEventStream,
		"text/event-stream;q=0.5, application/json": mediaJSON,
		"text/*":                    mediaEventStream,
		"text/html, */*;q=0.1":      mediaJSON,
		"application/json;q=0, */*": mediaEventStream,
		"text/html":                 "",
		"application/json;q=0, text/event-stream;q=0": "",
		"application/json;q=7":                        "",
		"application/json;q=NaN":                      "",
		"application/json;v=1;q=0.2, text/*;q=0.3":    mediaEventStream,
		",;,": "",
	} {
		assert.Equalf(t, want, accepted(requestWith("Accept", header), mediaJSON, mediaEventStream), "Accept %q", header)
	}
}
