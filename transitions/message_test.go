package transitions

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func FuzzMessageType(f *testing.F) {
	for body, want := range map[string]string{
		`{"type":"a.b"}`: "a.b", ` {"x":{"type":"c"},"y":[1,"type"],"type":"a"} `: "a", `{"type":"a"`: "a", `{"type":7}`: "", `{"type":null}`: "",
		`{}`: "", `[]`: "", ``: "", `{"type"`: "", `"type"`: "", `{"type":"\u0000"}`: "", `{"type":"` + strings.Repeat("x", 256) + `"}`: "",
		`{"x":}`: "",
	} {
		assert.Equalf(f, want, typeOf([]byte(body)), "%s has type", body)
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := typeOf(body)
		assert.Equalf(t, "", TextProblem(got, MaxKey), "%q", got)
	})
}

func TestMessageTypeDefaultsToBody(t *testing.T) {
	t.Parallel()
	m := Message{Body: []byte(`{"type":"paid"}`)}
	assert.Equal(t, "paid", m.WithDefaults().Type)
	m.Type = "booked"
	assert.Equal(t, "booked", m.WithDefaults().Type)
}
