package stream

import (
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api/internal/streamtest"
)

func TestMessages(t *testing.T) {
	id := uuid.New().String()
	for text, want := range map[string]Start{
		`{"op":"subscribe","id":"a","after":"start"}`:                                 {oldest: true},
		`{"op":"subscribe","id":"a","after":"now"}`:                                   {now: true},
		`{"op":"subscribe","id":"a","after":0}`:                                       {},
		` {"after":12,"id":"a","op":"subscribe"} `:                                    {position: 12},
		`{"op":"subscribe","id":"a","after":1,"filter":{}}`:                           {position: 1},
		`{"op":"subscribe","id":"a","after":1,"filter":{"instance":"` + id + `"}}`:    {position: 1},
		`{"op":"subscribe","id":"a","after":1,"filter":{"types":[],"states":["x"]}}`:  {position: 1},
		`{"op":"subscribe","id":"a","after":1,"filter":{"types":null,"workflow":""}}`: {position: 1},
		`{"op":"unsubscribe","id":"a"}`:                                               {},
	} {
		m, err := parseMessage([]byte(text))
		assert.Truef(t, err == nil && m.after == want && m.id == "a", "%s: %+v, %v", text, m, err)
	}
}

func TestAWatchNamesACommand(t *testing.T) {
	m, err := parseMessage([]byte(`{"op":"watch","id":"w","scope":"order:pay","key":"k/\u00e4"}`))
	assert.Truef(t, err == nil && m.op == Watch && m.id == "w" && m.scope == "order:pay" && m.key == "k/ä", "%+v, %v", m, err)
}

func TestAnotherCredentialIsRead(t *testing.T) {
	m, err := parseMessage([]byte(`{"op":"authenticate","id":"c","credential":"pawlt_a.b.c"}`))
	assert.Truef(t, err == nil && m.op == Authenticate && m.id == "c" && m.credential == "pawlt_a.b.c", "%+v, %v", m, err)
}

func TestBadMessagesAreRefusedInFewWords(t *testing.T) {
	for _, text := range streamtest.BadMessages() {
		m, err := parseMessage([]byte(text))
		if err == nil {
			t.Errorf("%.80q was taken for %+v", text, m)
		} else if len(err.Error()) > maxControl-2 {
			t.Errorf("%.80q: %d bytes do not fit into a close frame: %v", text, len(err.Error()), err)
		}
	}
}

func FuzzMessage(f *testing.F) {
	for _, text := range streamtest.BadMessages() {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"op":"subscribe","id":"a","after":12,"filter":{"workflow":"w","types":["t"]}}`))
	f.Add([]byte(`{"op":"watch","id":"w","scope":"s","key":"k"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseMessage(text)
		switch {
		case err != nil && len(err.Error()) > maxControl-2:
			t.Errorf("%q: the reason is too long: %v", text, err)
		case err != nil:
		case m.id == "" || m.after.position < 0 || !slices.Contains(Operations, m.op), (m.op == Authenticate) != (m.credential != ""),
			(m.op == Watch) != (m.scope != "" && m.key != ""), len(m.scope) > 255, len(m.key) > 255:
			t.Errorf("%q: %+v", text, m)
		}
	})
}
