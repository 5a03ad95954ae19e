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

// Limits of a command's parts, in bytes. They are also CHECKs of the tables.
const (
	MaxKey     = 255
	MaxScope   = 255
	MaxTenant  = 64
	MaxActor   = 255
	MaxProof   = 512
	MaxReason  = 4096
	MaxPayload = 1 << 20
)

// AnyRole among a command's roles stands for every role.
const AnyRole = "*"

// HasRole reports whether somebody with these roles has one of those that are needed;
// where none is, everybody has.
func HasRole(roles []string, needed ...string) bool {
	return len(needed) == 0 || slices.ContainsFunc(roles, func(role string) bool { return role == AnyRole || slices.Contains(needed, role) })
}

// Command is what a caller asks: one intent, named by tenant, scope and key.
type Command struct {
	Tenant string // "" is "default"
	Scope  string // "" is the default scope; see DefaultScope
	Key    string // the idempotency key, required, opaque

	Workflow    string    // may be empty where Instance is given
	Transition  string    // required
	Instance    uuid.UUID // the instance; zero for a creation or with BusinessKey
	BusinessKey string    // the instance by the caller's own number

	Payload   []byte    // JSON object; empty is {}
	NotBefore time.Time // decide it then; zero: now
	// HappenedAt is when it happened, of an import; zero: now. The workflow's code and its timers take it for now, and
	// the audit row has both times.
	HappenedAt time.Time

	IfVersion int64    // refuse unless the instance has this version; 0 does not ask
	Actor     string   // "" is "local"
	Roles     []string // what the actor may be; none is none, AnyRole is all
	Proof     string   // how it is known who the actor is, for the audit row; "" where that was not asked

	// Credential is what the command was sent with, if it can be revoked. It is checked again before a command with NotBefore is
	// decided; see engine.Config.Recheck. It is no part of the request that the key stands for.
	Credential Credential

	// Reason is why the actor asks, for the audit row and the events. It is part of the request that the key stands for.
	// Where the workflow's code says why ([workflow.Call.Because]), or an activity has failed, that is written; the code sees
	// what was given ([workflow.Call.Reason]).
	Reason string

	// Trace is where in a trace it is asked; nowhere: the context of the call tells, as it does for many
	// at once. It is no part of the request: each attempt with one key is in its own.
	Trace tracing.Context

	// How long the key is good for, within the bounds of the workflow's Horizons.
	// They are no part of the request that the key stands for: of two attempts the
	// first one's count.
	Replay    time.Duration // of the answer, from when it is given; 0 is the workflow's
	Tombstone time.Duration // after that, may be workflow.Forever; 0 is the workflow's
}

// Credential identifies a credential that can be revoked. It is no secret. The zero value is none.
type Credential struct {
	Key    string    `json:"key,omitempty"`    // the id of the API key that it is, or that a ticket was requested with
	Ticket string    `json:"ticket,omitempty"` // the id of the key that signed the ticket
	Until  time.Time `json:"until,omitzero"`   // when it ends; zero: it does not
}

// The values that stand for an empty tenant and actor.
const (
	DefaultTenant = "default"
	DefaultActor  = "local"
)

// WithDefaults fills what may be left empty.
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

// CheckKey refuses an idempotency key that is empty or cannot be stored.
func CheckKey(key string) error {
	if key == "" {
		return workflow.Errorf(workflow.KeyMissing, "an idempotency key is required: choose one per intent and repeat it on every retry")
	}
	if problem := TextProblem(key, MaxKey); problem != "" {
		return workflow.Errorf(workflow.KeyInvalid, "the idempotency key %s", problem)
	}
	return nil
}

// CheckScope refuses a scope that is empty or cannot be stored.
func CheckScope(scope string) error {
	if scope == "" {
		return workflow.Errorf(workflow.ScopeMissing, "the idempotency scope is empty")
	}
	if problem := TextProblem(scope, MaxScope); problem != "" {
		return workflow.Errorf(workflow.ScopeInvalid, "the idempotency scope %s", problem)
	}
	return nil
}

// CheckTenant refuses a tenant's name that cannot be stored. "" is the default
// tenant.
func CheckTenant(tenant string) error {
	if problem := TextProblem(tenant, MaxTenant); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the tenant %s", problem)
	}
	return nil
}

// TextProblem says why a text cannot be stored, or "": it is longer than limit
// bytes, contains a NUL or is not UTF-8.
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

// DefaultScope is the scope of a command that names none: the workflow and the
// instance, so that one key on two instances is two intents; for a creation the
// workflow and the transition.
func DefaultScope(workflowName, transition string, instance uuid.UUID) string {
	if instance == uuid.Nil {
		return workflowName + ":" + transition
	}
	return workflowName + ":" + instance.String()
}
