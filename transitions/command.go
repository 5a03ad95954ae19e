package transitions

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/workflow"
)

// Limits of a command's parts in bytes. The tables have equal CHECKs.
const (
	MaxKey     = 255
	MaxScope   = 255
	MaxTenant  = 64
	MaxActor   = 255
	MaxProof   = 512
	MaxReason  = 4096
	MaxPayload = 1 << 20
)

// AnyRole in a command's roles matches every role.
const AnyRole = "*"

// HasRole reports whether roles include one of the needed ones. It is true if none are needed.
func HasRole(roles []string, needed ...string) bool {
	return len(needed) == 0 || slices.ContainsFunc(roles, func(role string) bool {
		return role == AnyRole || slices.Contains(needed,
			role)
	})
}

// Command is a request to apply a transition to an instance. Tenant, scope and key identify it.
type Command struct {
	Tenant      string    // defaults to DefaultTenant
	Key         string    // idempotency key; required
	Workflow    string    // optional with Instance
	Transition  string    // required
	Instance    uuid.UUID // zero for a creation or with BusinessKey
	BusinessKey string    // identifies the instance instead of Instance
	Payload     []byte    // JSON object; defaults to {}
	Actor       string    // defaults to DefaultActor
	Roles       []string  // of the actor; AnyRole matches all

	// Reason is the actor's reason, for the audit row and the events. The workflow's code reads it with [workflow.Call.Reason]
	// and replaces it with [workflow.Call.Because]; so does the failure of an activity.
	Reason string

	Options
}

// Options are the rarely used fields of a Command. The zero value is the default of each.
type Options struct {
	Scope     string    // of the key; defaults to DefaultScope
	IfVersion int64     // refuse unless the instance has this version; zero means any
	NotBefore time.Time // execute the command at this time; zero means now

	// HappenedAt is the time of an imported fact; zero means now. The workflow's code and its timers use it as the current time, and
	// the audit row has both times.
	HappenedAt time.Time

	// A retry with the same key can change the following fields. The values of the first attempt apply.

	Proof      string          // how the actor was authenticated, for the audit row
	Credential Credential      // of the sender, if it can be revoked; engine.Config.Recheck checks a scheduled command's again
	Trace      tracing.Context // of the request; defaults to that of the call's context
	Replay     time.Duration   // how long the result is replayed, within the workflow's Horizons; zero means the workflow's
	Tombstone  time.Duration   // how long the key is refused after that; can be workflow.Forever; zero means the workflow's
}

// Credential identifies a revocable credential. It is not secret. The zero value means none.
type Credential struct {
	Key    string    `json:"key,omitempty"`    // id of the API key, also if a ticket was requested with it
	Ticket string    `json:"ticket,omitempty"` // id of the key that signed the ticket
	Until  time.Time `json:"until,omitzero"`   // expiry; zero: none
}

// Defaults of tenant and actor.
const (
	DefaultTenant = "default"
	DefaultActor  = "local"
)

// WithDefaults returns the command with defaults.
func (c Command) WithDefaults() Command {
	if c.Tenant == "" {
		c.Tenant = DefaultTenant
	}
	if c.Actor == "" {
		c.Actor = DefaultActor
	}
	if !c.HappenedAt.IsZero() {
		c.HappenedAt = c.HappenedAt.UTC().Truncate(time.Microsecond)
	}
	return c
}

// CheckKey validates an idempotency key.
func CheckKey(key string) error {
	if key == "" {
		return workflow.Errorf(workflow.KeyMissing, "an idempotency key is required: choose one per intent and repeat it on every retry")
	}
	if problem := TextProblem(key, MaxKey); problem != "" {
		return workflow.Errorf(workflow.KeyInvalid, "the idempotency key %s", problem)
	}
	return nil
}

// CheckScope validates a scope.
func CheckScope(scope string) error {
	if scope == "" {
		return workflow.Errorf(workflow.ScopeMissing, "the idempotency scope is empty")
	}
	if problem := TextProblem(scope, MaxScope); problem != "" {
		return workflow.Errorf(workflow.ScopeInvalid, "the idempotency scope %s", problem)
	}
	return nil
}

// CheckTenant validates a tenant's name. "" is the default tenant.
func CheckTenant(tenant string) error {
	if problem := TextProblem(tenant, MaxTenant); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the tenant %s", problem)
	}
	return nil
}

// TextProblem returns why a text cannot be stored, or "": it is longer than limit bytes, contains a
// NUL or is not UTF-8.
func TextProblem(s string, limit int) string {
	switch {
	case len(s) > limit:
		return "is longer than " + strconv.Itoa(limit) + " bytes"
	case strings.IndexByte(s, 0) >= 0:
		return "contains a NUL"
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	}
	return ""
}

// DefaultScope returns the scope of a command without one: workflow and instance, so that a key on
// two instances identifies two commands; for a creation workflow and transition.
func DefaultScope(workflowName, transition string, instance uuid.UUID) string {
	if instance == uuid.Nil {
		return workflowName + ":" + transition
	}
	return workflowName + ":" + instance.String()
}
