package api

import (
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api/internal/stream"
	"github.com/pawlhq/pawl/workflow"
)

var pointer = regexp.MustCompile(`"\$ref":"#([^"]+)"`)

// What a client may ask, and what the server says, is in the document, and a reference leads somewhere.
func TestTheAsyncAPIDocumentIsWhole(t *testing.T) {
	document, err := asyncAPI(publicURL{}, []*workflow.Workflow{letters(t, "letter", 1)})
	if err != nil {
		t.Fatal(err)
	}
	var all any
	if err := json.Unmarshal(document, &all); err != nil {
		t.Fatal(err)
	}
	at := func(p string) any {
		value := all
		for token := range jsontext.Pointer(p).Tokens() {
			object, _ := value.(map[string]any)
			value = object[token]
		}
		return value
	}
	for _, ref := range pointer.FindAllStringSubmatch(string(document), -1) {
		if at(ref[1]) == nil {
			t.Errorf("%s leads nowhere", ref[0])
		}
	}
	for _, op := range stream.Operations {
		if at("/components/messages/stream."+op) == nil || at("/channels/stream/messages/"+op) == nil {
			t.Errorf("there is no message %s", op)
		}
	}
	if asked, _ := at("/operations/ask/messages").([]any); len(asked) != len(stream.Operations) || at("/operations/ask/action") != "receive" {
		t.Errorf("clients send %v", asked)
	}
	if !strings.Contains(string(document), `"letter.sign"`) {
		t.Error("the types of the events are not named")
	}
}
