package transitions

import (
	"strings"
	"testing"
)

func FuzzMessageType(f *testing.F) {
	for body, want := range map[string]string{
		`{"type":"a.b"}`: "a.b", ` {"x":{"type":"c"},"y":[1,"type"],"type":"a"} `: "a", `{"type":"a"`: "a", `{"type":7}`: "", `{"type":null}`: "",
		`{}`: "", `[]`: "", ``: "", `{"type"`: "", `"type"`: "", `{"type":"\u0000"}`: "", `{"type":"` + strings.Repeat("x", 256) + `"}`: "",
		`{"x":}`: "",
	} {
		if got := typeOf([]byte(body)); got != want {
			f.Errorf("%s has type %q, want %q", body, got, want)
		}
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if got := typeOf(body); TextProblem(got, MaxKey) != "" {
			t.Errorf("%q", got)
		}
	})
}

func TestMessageTypeDefaultsToBody(t *testing.T) {
	t.Parallel()
	m := Message{Body: []byte(`{"type":"paid"}`)}
	if got := m.WithDefaults().Type; got != "paid" {
		t.Errorf("got %q", got)
	}
	m.Type = "booked"
	if got := m.WithDefaults().Type; got != "booked" {
		t.Errorf("got %q", got)
	}
}
