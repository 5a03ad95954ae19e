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
	return len(needed) == 0 || slices.ContainsFunc(roles, func(role string) bool { return role == AnyRole || slices.Contains(needed, role) })
}

// Command is a command of a caller, identified by tenant, scope and key.
type Command struct {
	Tenant string // defaults to "default"
	Scope  string // defaults to DefaultScope
	Key    string // idempotency key; required, opaque

	Workflow    string    // optional with Instance
	Transition  string    // required
	Instance    uuid.UUID // zero for a creation or with BusinessKey
	BusinessKey string    // identifies the instance instead of Instance

	Payload   []byte    // JSON object; empty is {}
	NotBefore time.Time // execute it then; zero: now
	// HappenedAt is the time of an import; zero means now. The workflow's code and its timers use
	// it as the current time, and the audit row has both times.
	HappenedAt time.Time

	IfVersion int64    // refuse unless the instance has this version; 0: any
	Actor     string   // defaults to "local"
	Roles     []string // of the actor; AnyRole matches all
	Proof     string   // how the actor was authenticated, for the audit row; "" if unknown

	// Credential is the sender's credential if it can be revoked. Before a scheduled command is
	// executed, it is checked again; see engine.Config.Recheck. It is not part of the request that
	// the key identifies.
	Credential Credential

	// Reason is the actor's reason, for the audit row and the events. It is part of the request
	// that the key identifies. The workflow's code sees it ([workflow.Call.Reason]) and can replace
	// it ([workflow.Call.Because]); so does the failure of an activity.
	Reason string

	// Trace is the trace context of the request. Defaults to that of the call's context, for
	// example in bulk requests. It is not part of the request that the key identifies.
	Trace tracing.Context

	// Retention of the key, within the bounds of the workflow's Horizons. It is not part of the
	// request that the key identifies; the first attempt's values apply.
	Replay    time.Duration // of the result, from its completion; 0: the workflow's
	Tombstone time.Duration // after that, may be workflow.Forever; 0: the workflow's
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
