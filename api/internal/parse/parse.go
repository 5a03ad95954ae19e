// Package parse reads what callers send in more than one place, and says what is wrong
// with it.
package parse

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// JSON says where a JSON text is not what it should be and why, without
// repeating the text or naming Go's types.
func JSON(err error) workflow.FieldError {
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		message := "has the wrong type"
		if errors.Is(err, json.ErrUnknownName) {
			message = "unknown field"
		}
		return workflow.FieldError{Pointer: shownPointer(e.JSONPointer), Message: message}
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		message := "is not valid JSON"
		if errors.Is(err, jsontext.ErrDuplicateName) {
			message = "a field occurs twice"
		}
		return workflow.FieldError{Pointer: shownPointer(e.JSONPointer), Message: message}
	}
	return workflow.FieldError{Message: "is not valid JSON"}
}

// shownPointer bounds a pointer, which may be as long and as deep as the text.
func shownPointer(p jsontext.Pointer) string { return Shown(string(p)) }

// ID accepts the one form in which ids are written: 36 characters.
func ID(s string) (uuid.UUID, error) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 || id == uuid.Nil {
		return uuid.Nil, workflow.Errorf(workflow.InvalidRequest, "the instance's id is not a UUID")
	}
	return id, nil
}

// Shown is a caller's text as it may stand in a message.
func Shown(s string) string {
	const limit = 64
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}
