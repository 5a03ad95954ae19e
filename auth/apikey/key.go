package apikey

import (
	"slices"
	"time"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Key is an API key without its text. What it may does not change. A time that is zero is none.
type Key struct {
	ID     string
	Tenant string
	Name   string // of the keys of a tenant that are not revoked one has it
	Actor  string // whose commands those of the key are
	Roles  []string
	Grants auth.Grants

	CreatedAt  time.Time
	CreatedBy  string
	RotatedAt  time.Time // when its text was made, where that is not the first one
	RotatedBy  string    // who was given that
	FormerEnds time.Time // until when the text before it is good too
	ExpiresAt  time.Time
	RevokedAt  time.Time
	RevokedBy  string
	LastUsedAt time.Time // to the minute, and a minute late

	hash     Hash // of the text
	former   Hash // of the one before it, where FormerEnds is not zero
	revision int64
}

// Bounds of a key.
const (
	MaxName    = 100 // bytes
	MaxRoles   = 64
	MaxGrants  = 64
	MaxCreator = 1024 // bytes of who has made or revoked it

	// MaxOverlap is how long the former text of a key can be good beside the new one.
	MaxOverlap = 90 * 24 * time.Hour
)

// Check says what is wrong with a key that is to be made. Error: InvalidRequest.
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
		return workflow.Errorf(workflow.InvalidRequest, "a key has at most %d roles, none of which is empty or longer than %d bytes",
			MaxRoles, transitions.MaxActor)
	case len(k.Grants) == 0 || len(k.Grants) > MaxGrants:
		return workflow.Errorf(workflow.InvalidRequest, "a key has 1 to %d grants", MaxGrants)
	case !k.ExpiresAt.IsZero() && (!k.ExpiresAt.After(now) || k.ExpiresAt.Year() > 9999):
		return workflow.Errorf(workflow.InvalidRequest, "the key would end before it begins, or after the year 9999")
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

// Rotation is how a key gets a new text.
type Rotation struct {
	// Overlap is for how long the text that the key has is good beside the new one, at most MaxOverlap. With 0 every
	// former text ends at once.
	Overlap time.Duration
	// Lost says that nobody has the text that the key has: it ends at once, and the one before it goes on as it did. Overlap is
	// not looked at.
	Lost bool
	By   string // who gets the text
}

// Filter selects keys. They are listed by tenant, and then in the order in which they were made.
type Filter struct {
	Tenant string // "" is all of them
	After  Key    // the cursor: the last one of the page before, of which Tenant, CreatedAt and ID count
	Limit  int    // at least 1
}
