package api

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestMessages(t *testing.T) {
	id := uuid.New().String()
	for text, want := range map[string]startingPoint{
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
		if err != nil || m.after != want || m.id != "a" {
			t.Errorf("%s: %+v, %v", text, m, err)
		}
	}
}

func TestAWatchNamesACommand(t *testing.T) {
	m, err := parseMessage([]byte(`{"op":"watch","id":"w","scope":"order:pay","key":"k/\u00e4"}`))
	if err != nil || m.op != opWatch || m.id != "w" || m.scope != "order:pay" || m.key != "k/ä" {
		t.Errorf("%+v, %v", m, err)
	}
}

// BadMessages are also sent to a real server; see TestBadMessagesCloseTheirConnectionOnly.
var BadMessages = []string{
	``, ` `, `null`, `[]`, `"subscribe"`, `1`, `{`, `{}`, `{}{}`,
	`{"op":"subscribe"}`,
	`{"op":"subscribe","id":"a"}`,
	`{"op":"subscribe","id":"","after":1}`,
	`{"op":"subscribe","id":"\u0000","after":1}`,
	"{\"op\":\"subscribe\",\"id\":\"\xff\",\"after\":1}",
	"{\"op\":\"subscribe\",\"id\":\"a\x00\",\"after\":1}",
	`{"op":"subscribe","id":7,"after":1}`,
	`{"op":"subscribe","id":"a","after":-1}`,
	`{"op":"subscribe","id":"a","after":1.5}`,
	`{"op":"subscribe","id":"a","after":1e400}`,
	`{"op":"subscribe","id":"a","after":99999999999999999999}`,
	`{"op":"subscribe","id":"a","after":"5"}`,
	`{"op":"subscribe","id":"a","after":"later"}`,
	`{"op":"subscribe","id":"a","after":null}`,
	`{"op":"subscribe","id":"a","after":[1]}`,
	`{"op":"subscribe","id":"a","after":1,"after":2}`,
	`{"op":"subscribe","id":"a","after":1,"extra":1}`,
	`{"op":"subscribe","id":"a","after":1,"filter":[]}`,
	`{"op":"subscribe","id":"a","after":1,"filter":{"instance":"x"}}`,
	`{"op":"subscribe","id":"a","after":1,"filter":{"instance":7}}`,
	`{"op":"subscribe","id":"a","after":1,"filter":{"instance":"00000000-0000-0000-0000-000000000000"}}`,
	`{"op":"subscribe","id":"a","after":1,"filter":{"types":"x"}}`,
	`{"op":"subscribe","id":"a","after":1,"filter":{"tenant":"other"}}`,
	`{"op":"subscribe","id":"a","after":1,"filter":{"states":[` + strings.Repeat(`"x",`, maxChoices) + `"x"]}}`,
	`{"op":"subscribe","id":"` + strings.Repeat("x", maxSubscriptionID+1) + `","after":1}`,
	`{"op":"subscribe","id":"a","after":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`,
	`{"op":"unsubscribe"}`,
	`{"op":"unsubscribe","id":"a","after":1}`,
	`{"op":"unsubscribe","id":"a","filter":{"workflow":"x"}}`,
	`{"op":"unsubscribe","id":"a","key":"k"}`,
	`{"op":"subscribe","id":"a","after":1,"scope":"s"}`,
	`{"op":"watch","id":"w"}`,
	`{"op":"watch","scope":"s","key":"k"}`,
	`{"op":"watch","id":"w","scope":"s"}`,
	`{"op":"watch","id":"w","key":"k"}`,
	`{"op":"watch","id":"w","scope":"","key":"k"}`,
	`{"op":"watch","id":"w","scope":"s","key":""}`,
	`{"op":"watch","id":"w","scope":null,"key":"k"}`,
	`{"op":"watch","id":"w","scope":"s","key":7}`,
	`{"op":"watch","id":"w","scope":["s"],"key":"k"}`,
	`{"op":"watch","id":"w","scope":"s\u0000","key":"k"}`,
	"{\"op\":\"watch\",\"id\":\"w\",\"scope\":\"s\",\"key\":\"\xff\"}",
	`{"op":"watch","id":"w","scope":"s","key":"` + strings.Repeat("k", 256) + `"}`,
	`{"op":"watch","id":"w","scope":"` + strings.Repeat("s", 256) + `","key":"k"}`,
	`{"op":"watch","id":"w","scope":"s","key":"k","key":"k"}`,
	`{"op":"watch","id":"w","scope":"s","key":"k","after":1}`,
	`{"op":"watch","id":"w","scope":"s","key":"k","filter":{"workflow":"x"}}`,
	`{"op":"watch","id":"w","scope":"s","key":"k","tenant":"other"}`,
	`{"op":"unwatch","id":"w"}`,
	`{"op":"Subscribe","id":"a","after":1}`,
	`{"OP":"subscribe","id":"a","after":1}`,
}

func TestBadMessagesAreRefusedInFewWords(t *testing.T) {
	for _, text := range BadMessages {
		m, err := parseMessage([]byte(text))
		if err == nil {
			t.Errorf("%.80q was taken for %+v", text, m)
		} else if len(err.Error()) > maxControl-2 {
			t.Errorf("%.80q: %d bytes do not fit into a close frame: %v", text, len(err.Error()), err)
		}
	}
}

func FuzzMessage(f *testing.F) {
	for _, text := range BadMessages {
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
		case m.id == "" || m.after.position < 0 || m.op != opSubscribe && m.op != opUnsubscribe && m.op != opWatch,
			(m.op == opWatch) != (m.scope != "" && m.key != ""), len(m.scope) > 255, len(m.key) > 255:
			t.Errorf("%q: %+v", text, m)
		}
	})
}
