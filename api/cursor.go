package api

import (
	"encoding/base64"
	"math"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// maxPosition is the largest position or version.
const maxPosition = math.MaxInt64

// A cursor of the list of instances is the last id of the page before, behind a
// byte that says so: another order of the list will have another byte, and its
// cursors will not be mistaken for these.
const cursorByID = 1

// encodeCursor writes the cursor as callers see it. They must not look inside.
func encodeCursor(last uuid.UUID) string {
	raw := append([]byte{cursorByID}, last[:]...)
	return base64.RawURLEncoding.EncodeToString(raw)
}

func decodeCursor(s string) (uuid.UUID, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err == nil && len(raw) == 17 && raw[0] == cursorByID {
		// The decoder passes over line breaks, so look at the way back.
		if id := uuid.UUID(raw[1:]); encodeCursor(id) == s {
			return id, nil
		}
	}
	return uuid.Nil, workflow.Errorf(workflow.InvalidRequest, "the cursor is not one of this list; begin again without it")
}
