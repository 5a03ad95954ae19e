package demo

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// check is something that must hold of an answer.
type check struct {
	says  string // told when it holds, "" where the answer says it itself
	holds func(*story, answer) error
}

// first asks that the answer is not a replay.
var first = check{"done now, for the first time", func(_ *story, a answer) error {
	return wantHeader(a, "Idempotent-Replayed", "")
}}

// replayOf asks for the stored answer, byte for byte.
func replayOf(name string) check {
	return check{"a replay: the stored answer, byte for byte", func(s *story, a answer) error {
		if err := wantHeader(a, "Idempotent-Replayed", "true"); err != nil {
			return err
		}
		if want := s.answers[name]; a.status != want.status || !bytes.Equal(a.body, want.body) {
			return fmt.Errorf("the replay is %d %s, and was %d %s", a.status, a.body, want.status, want.body)
		}
		return nil
	}}
}

// refused asks for a problem document with the code.
func refused(code, says string) check { return has("code", code, says) }

// has asks for a member of the answer's JSON object.
func has(member string, want any, says string) check {
	return check{says, func(_ *story, a answer) error { return wantMember(a, member, want) }}
}

// header asks for a header line.
func header(name, want, says string) check {
	return check{says, func(_ *story, a answer) error { return wantHeader(a, name, want) }}
}

// sameInstanceAs asks for the instance of an earlier answer.
func sameInstanceAs(name string) check {
	return check{"the same instance", func(s *story, a answer) error {
		want, err := member(s.answers[name].body, "instance")
		if err != nil {
			return err
		}
		return wantMember(a, "instance", want)
	}}
}

func wantHeader(a answer, name, want string) error {
	if got := a.header.Get(name); got != want {
		return fmt.Errorf("the header %s is %q, and should be %q", name, got, want)
	}
	return nil
}

func wantMember(a answer, name string, want any) error {
	got, err := member(a.body, name)
	if err != nil {
		return err
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("%q is %v, and should be %v: %s", name, got, want, a.body)
	}
	return nil
}

// member returns a member of a JSON object: a string as it is, anything else as
// its JSON text.
func member(body []byte, name string) (string, error) {
	var object map[string]jsontext.Value
	if err := json.Unmarshal(body, &object); err != nil {
		return "", fmt.Errorf("the answer is no JSON object: %w", err)
	}
	value, ok := object[name]
	if !ok {
		return "", fmt.Errorf("the answer has no %q: %s", name, body)
	}
	if value.Kind() != '"' {
		return string(value), nil
	}
	var s string
	err := json.Unmarshal(value, &s)
	return s, err
}
