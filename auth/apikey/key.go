package apikey

import (
	"slices"
	"time"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Key is an API key without its text. Its grants do not change. Zero times mean none.
type Key struct {
	ID     string
	Tenant string
	Name   string // unique among the keys of a tenant that are not revoked
	Actor  string // the actor of the key's commands
	Roles  []string
	Grants auth.Grants

	CreatedAt  time.Time
	CreatedBy  string
	RotatedAt  time.Time // when its text was created, unless it is the first one
	RotatedBy  string    // who received that text
	FormerEnds time.Time // when the previous text expires
	ExpiresAt  time.Time
	RevokedAt  time.Time
	RevokedBy  string
	LastUsedAt time.Time // to the minute, with a delay of a minute

	hash     Hash // of the text
	former   Hash // of the previous text unless FormerEnds is zero
	revision int64
}

// Bounds of a key.
const (
	MaxName    = 100 // bytes
	MaxRoles   = 64
	MaxGrants  = 64
	MaxCreator = 1024 // bytes of the name of who created or revoked it

	// MaxOverlap is the maximum time for which the former text of a key remains valid.
	MaxOverlap = 90 * 24 * time.Hour
)

// Check validates a new key. Error: InvalidRequest.
func (k *Key) Check(now time.Time) error {
	for _, one := range []struct {
		what, text string
		limit      int
	}{{"tenant", k.Tenant, transitions.MaxTenant}, {"name", k.Name, MaxName}, {"actor", k.Actor, transitions.MaxActor},
		{"creator", k.CreatedBy, MaxCreator}} {
		if problem := textProblem(one.text, one.limit); problem != "" {
			return workflow.Errorf(workflow.InvalidRequest, "the %s of a key %s", one.what, problem)
		}
	}
	switch {
	case transitions.ReservedPrefix(k.Actor) != "":
		return workflow.Errorf(workflow.InvalidRequest, "actors that begin with %q are Pawl's own", transitions.ReservedPrefix(k.Actor))
	case len(k.Roles) > MaxRoles || slices.ContainsFunc(k.Roles, noRole):
		return workflow.Errorf(workflow.InvalidRequest, "a key has at most %d roles of 1 to %d bytes",
			MaxRoles, transitions.MaxActor)
	case len(k.Grants) == 0 || len(k.Grants) > MaxGrants:
		return workflow.Errorf(workflow.InvalidRequest, "a key has 1 to %d grants", MaxGrants)
	case !k.ExpiresAt.IsZero() && (!k.ExpiresAt.After(now) || k.ExpiresAt.Year() > 9999):
		return workflow.Errorf(workflow.InvalidRequest, "the key must end in the future, by the year 9999")
	}
	return nil
}

func noRole(s string) bool { return textProblem(s, transitions.MaxActor) != "" }

func textProblem(s string, limit int) string {
	if s == "" {
		return "is missing"
	}
	return transitions.TextProblem(s, limit)
}

// Rotation describes how a key gets a new text.
type Rotation struct {
	// Overlap is how long the current text remains valid, at most MaxOverlap. With zero all former texts expire at once.
	Overlap time.Duration
	// Lost reports that the current text was lost. It expires at once, and the one before it remains valid as it was. Overlap is ignored.
	Lost bool
	By   string // who receives the text
}

// Filter selects keys. They are listed by tenant and creation time.
type Filter struct {
	Tenant string // "" selects all
	After  Key    // cursor: Tenant, CreatedAt and ID of the last key of the previous page
	Limit  int    // at least 1
}
