package api

import (
	"regexp"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/internal/stream"
	"github.com/pawlhq/pawl/workflow"
)

var pointer = regexp.MustCompile(`"\$ref":"#([^"]+)"`)

// The document has all requests and messages, and its references resolve.
func TestTheAsyncAPIDocumentIsWhole(t *testing.T) {
	document, err := asyncAPI(publicURL{}, []*workflow.Workflow{letters(t, "letter", 1)})
	require.NoError(t, err)
	var all any
	require.NoError(t, json.Unmarshal(document, &all))
	at := func(p string) any {
		value := all
		for token := range jsontext.Pointer(p).Tokens() {
			object, _ := value.(map[string]any)
			value = object[token]
		}
		return value
	}
	for _, ref := range pointer.FindAllStringSubmatch(string(document), -1) {
		assert.NotNilf(t, at(ref[1]), "%s leads nowhere", ref[0])
	}
	for _, op := range stream.Operations {
		assert.Truef(t, at("/components/messages/stream."+op) != nil && at("/channels/stream/messages/"+op) != nil,
			"there is no message %s", op)
	}
	if asked, _ := at("/operations/ask/messages").([]any); len(asked) != len(stream.Operations) || at("/operations/ask/action") != "receive" {
		t.Errorf("clients send %v", asked)
	}
	assert.Contains(t, string(document), `"letter.sign"`, "the types of the events are not named")
}
