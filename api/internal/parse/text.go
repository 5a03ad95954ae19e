package parse

import (
	"strings"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

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
