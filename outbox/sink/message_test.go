package sink_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

func TestMessageIDFormat(t *testing.T) {
	tests := []struct {
		source, tenant string
		ordinal        int
		want           string
	}{
		{"", "default", 0, "default:42-0"},
		{"", "default", 2, "default:42-2"},
		{"/pawl", "default", 2, "default:42-2"},
		{"", "a.b", 0, "a%2Eb:42-0"},
		{"", "a_b", 0, "a_b:42-0"},
		{"", "a:b\n", 0, "a%3Ab%0A:42-0"},
		{"", "Müller", 0, "M%C3%BCller:42-0"},
		{"/shop", "default", 0, "%2Fshop:default:42-0"}, // two installations with one receiver
		{"https://shop.example", "a", 1, "https%3A%2F%2Fshop%2Eexample:a:42-1"},
	}
	for _, tt := range tests {
		e := transitions.Event{Source: tt.source, Tenant: tt.tenant, Position: 42, Ordinal: tt.ordinal}
		assert.Equalf(t, tt.want, sink.MessageID(&e), "tenant %q of %q", tt.tenant, tt.source)
	}
}

func FuzzEscapeIsReversible(f *testing.F) {
	f.Add("acme")
	f.Add("a.b *>%41")
	f.Fuzz(func(t *testing.T, s string) {
		token := sink.Escape(s)
		assert.Falsef(t, strings.ContainsAny(token, ".*> \t\r\n:"), "%q is no token", token)
		back, err := url.PathUnescape(token)
		assert.Truef(t, err == nil && back == s, "%q came back as %q, %v", s, back, err)
	})
}

// Attributes must match the body.
func TestAttributesMatchCloudEvent(t *testing.T) {
	plain := transitions.Event{
		Source: "https://shop.example/eu", Tenant: "north/süd", Position: 1 << 40, Ordinal: 1, Type: "order.paid", Workflow: "order",
		Instance: uuid.New(), Version: 3,
		Transition: "pay", State: "Paid \"100%\"\n", At: time.Date(2026, 3, 1, 12, 0, 0, 5000, time.FixedZone("", 3600)), Payload: []byte(`{}`),
	}
	told := plain
	told.BusinessKey, told.From, told.Actor, told.Reason = "Süd 7%\x01", "placed", "ann \"a\"", "first line\nsecond line"
	told.Scope, told.Key, told.Cause, told.CausedBy = "inbox:bank", "m 1", transitions.CausedByMessage, "bank"
	told.Attributes = map[string]string{"never": "shown"}
	erased := plain
	erased.Payload = nil
	for _, e := range []transitions.Event{plain, told, erased} {
		attributesAreThoseOf(t, &e)
	}
	for n := range 24 { // iteration stops early
		for range sink.Attributes(&told) {
			if n--; n < 0 {
				break
			}
		}
	}
}

func attributesAreThoseOf(t *testing.T, e *transitions.Event) {
	t.Helper()
	var body map[string]any
	require.NoError(t, json.Unmarshal(e.AppendCloudEvent(nil), &body))
	delete(body, "data")
	delete(body, "datacontenttype") // describes the data, not the body
	for name, value := range sink.Attributes(e) {
		assert.Falsef(t, strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r == '"' || r > '~' }),
			"%s is %q, which is not fit for a header", name, value)
		decoded, err := url.PathUnescape(value)
		assert.NoError(t, err, name)
		if name == "source" {
			decoded = value // a URI, unencoded
		}
		assert.Equalf(t, decoded, fmt.Sprint(body[name]), "%s, and in the body", name)
		delete(body, name)
	}
	for name := range body {
		t.Errorf("%s is only in the body", name)
	}
}

func TestMessagesCanBeStored(t *testing.T) {
	f := sink.Fail(sink.Temporary, nil, "answered %s", "a\x00b\r\nc\xff\u202e"+strings.Repeat("ü", sink.MaxMessage))
	assert.Truef(t, strings.HasPrefix(f.Message, "answered a\uFFFDb  c\uFFFD\uFFFDü"), "message begins %q", f.Message[:40])
	assert.Truef(t, len(f.Message) <= sink.MaxMessage && len(f.Message) >= sink.MaxMessage-1 && utf8.ValidString(f.Message),
		"message has %d bytes, valid %v", len(f.Message), utf8.ValidString(f.Message))
}
