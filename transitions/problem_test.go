package transitions

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/workflow"
)

func TestProblemRoundTripOfEveryCode(t *testing.T) {
	t.Parallel()
	for _, info := range workflow.Codes {
		want := &workflow.Error{Code: info.Code, Message: `it is so: "é".`, State: open, Allowed: []string{"add", "drop"},
			Fields: []workflow.FieldError{{Pointer: "/a/0", Message: "wrong"}}}
		problem := ProblemOf(want)
		if problem.Status != info.Status || problem.Final != info.Final || problem.Title != info.Meaning ||
			!strings.HasSuffix(problem.Type, "#"+string(info.Code)) {
			t.Errorf("%s: got %+v", info.Code, problem)
		}
		var read Problem
		if err := json.Unmarshal(problem.JSON(), &read); err != nil {
			t.Fatalf("%s: %v", info.Code, err)
		}
		if got := read.Err(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v, want %#v", info.Code, got, want)
		}
	}
}

func TestProblemHidesCause(t *testing.T) {
	t.Parallel()
	secret := errors.New("password authentication failed for user pawl")
	for _, err := range []error{secret, &workflow.Error{Code: workflow.Unavailable, Message: "try again", Cause: secret}} {
		if told := string(ProblemOf(err).JSON()); strings.Contains(told, "password") {
			t.Errorf("the caller is told %s", told)
		}
	}
	if got := ProblemOf(secret); got.Code != workflow.Internal || got.Status != 500 {
		t.Errorf("got %+v", got)
	}
	if got := ProblemOf(errors.Join(errors.New("x"), workflow.Errorf(workflow.Locked, "wait"))); got.Code != workflow.Locked {
		t.Errorf("a wrapped error: got %+v", got)
	}
}

func TestOnlyFinalProblemHasHint(t *testing.T) {
	t.Parallel()
	for _, info := range workflow.Codes {
		got := ProblemOf(&workflow.Error{Code: info.Code, Message: "no"})
		if strings.Contains(got.Detail, "another try needs a new key") != info.Final {
			t.Errorf("%s: %q", info.Code, got.Detail)
		}
	}
}

func TestProblemIsValidJSON(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"\xff", "a\x00b", `"\`, "\u2028</script>", strings.Repeat("é", 10_000)} {
		for _, e := range []*workflow.Error{
			{Code: workflow.GuardRefused, Message: message},
			{Code: workflow.InvalidPayload, Message: "no", Fields: []workflow.FieldError{{Pointer: message, Message: message}}},
			{Code: workflow.IllegalTransition, Message: message, State: workflow.State(message), Allowed: []string{message}},
		} {
			raw := ProblemOf(e).JSON()
			if !jsontext.Value(raw).IsValid() {
				t.Errorf("%s with %.20q: got %q", e.Code, message, raw)
			}
			var p Problem
			if err := json.Unmarshal(raw, &p); err != nil || p.Code != e.Code {
				t.Errorf("%s with %.20q: got %+v, %v", e.Code, message, p, err)
			}
		}
	}
}
