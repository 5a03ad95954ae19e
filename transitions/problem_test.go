package transitions

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/workflow"
)

func TestProblemRoundTripOfEveryCode(t *testing.T) {
	t.Parallel()
	for _, info := range workflow.Codes {
		want := &workflow.Error{Code: info.Code, Message: `it is so: "é".`, State: open, Allowed: []string{"add", "drop"},
			Fields: []workflow.FieldError{{Pointer: "/a/0", Message: "wrong"}}}
		problem := ProblemOf(want)
		assert.Truef(t, problem.Status == info.Status && problem.Final == info.Final && problem.Title == info.Meaning &&
			strings.HasSuffix(problem.Type, "#"+string(info.Code)),
			"%s: got %+v", info.Code, problem)
		var read Problem
		require.NoError(t, json.Unmarshal(problem.JSON(), &read), info.Code)
		assert.Equal(t, want, read.Err(), info.Code)
	}
}

func TestProblemHidesCause(t *testing.T) {
	t.Parallel()
	secret := errors.New("password authentication failed for user pawl")
	for _, err := range []error{secret, &workflow.Error{Code: workflow.Unavailable, Message: "try again", Cause: secret}} {
		assert.NotContains(t, string(ProblemOf(err).JSON()), "password", "the caller is told")
	}
	got := ProblemOf(secret)
	assert.Truef(t, got.Code == workflow.Internal && got.Status == 500, "got %+v", got)
	got = ProblemOf(errors.Join(errors.New("x"), workflow.Errorf(workflow.Locked, "wait")))
	assert.Equalf(t, workflow.Locked, got.Code, "a wrapped error: got %+v", got)
}

func TestOnlyFinalProblemHasHint(t *testing.T) {
	t.Parallel()
	for _, info := range workflow.Codes {
		got := ProblemOf(&workflow.Error{Code: info.Code, Message: "no"})
		assert.Equalf(t, info.Final, strings.Contains(got.Detail, "another try needs a new key"), "%s: %q", info.Code, got.Detail)
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
			assert.Truef(t, jsontext.Value(raw).IsValid(), "%s with %.20q: got %q", e.Code, message, raw)
			var p Problem
			err := json.Unmarshal(raw, &p)
			assert.Truef(t, err == nil && p.Code == e.Code, "%s with %.20q: got %+v, %v", e.Code, message, p, err)
		}
	}
}
