package api

import (
	"time"

	"github.com/pawlhq/pawl/transitions"
)

// Settled is the answer to an operation on a command.
type Settled struct {
	Operation transitions.Action `json:"operation"`
	Scope     string             `json:"scope"`
	Key       string             `json:"key"`
	At        time.Time          `json:"at"`
	Position  int64              `json:"position,omitzero"` // in the log, of what it did to the instance
}

// each converts a list; nil is an empty one.
func each[A, B any](list []A, to func(*A) B) []B {
	out := make([]B, len(list))
	for i := range list {
		out[i] = to(&list[i])
	}
	return out
}
