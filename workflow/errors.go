package workflow

import (
	"errors"
	"fmt"
	"strings"
)

// Code is the stable name of an error. Codes never change their meaning; the
// table of all codes, their HTTP statuses and SQLSTATEs is Codes.
type Code string

// The codes, grouped by what the caller has to do about them.
const (
	// The request is malformed. Nothing was stored; mend it and send it again.
	InvalidRequest   Code = "invalid_request"
	InvalidPayload   Code = "invalid_payload"
	KeyMissing       Code = "idempotency_key_missing"
	KeyInvalid       Code = "idempotency_key_invalid"
	ScopeMissing     Code = "idempotency_scope_missing"
	ScopeInvalid     Code = "idempotency_scope_invalid"
	HashMissing      Code = "request_hash_missing"
	TooLarge         Code = "payload_too_large"
	UnsupportedMedia Code = "unsupported_media_type"
	NotAcceptable    Code = "not_acceptable"
	MethodNotAllowed Code = "method_not_allowed"

	// The caller may not do this. Nothing was stored.
	Unauthorized       Code = "unauthorized"
	Forbidden          Code = "forbidden"
	RoleRequired       Code = "role_required"
	SeparationOfDuties Code = "separation_of_duties"

	// There is no such thing. Nothing was stored.
	NotFound           Code = "not_found"
	WorkflowNotFound   Code = "workflow_not_found"
	TransitionNotFound Code = "transition_not_found"
	InstanceNotFound   Code = "instance_not_found"
	CommandNotFound    Code = "command_not_found"

	// The command was decided and refused. The refusal is stored and replayed:
	// another try needs a new key.
	IllegalTransition Code = "illegal_transition"
	GuardRefused      Code = "guard_refused"
	AlreadyExists     Code = "already_exists"
	VersionConflict   Code = "version_conflict"
	ActivityFailed    Code = "activity_failed"
	CommandCancelled  Code = "command_cancelled"
	CommandAbandoned  Code = "command_abandoned"
	CredentialEnded   Code = "credential_ended"
	NotStuck          Code = "command_not_stuck"
	TooManyEffects    Code = "too_many_effects"
	DataTooLarge      Code = "data_too_large"
	MigrationRefused  Code = "migration_refused"
	CorrectionRefused Code = "correction_refused"

	// The key is spoken for.
	KeyReused  Code = "idempotency_key_reused"
	KeyExpired Code = "idempotency_key_expired"
	InProgress Code = "command_in_progress"
	LeaseLost  Code = "lease_lost"

	// The message cannot become a command. It is on the list of dead messages.
	MessageReused   Code = "message_reused"
	MessageNotTaken Code = "message_not_taken"

	// What is there already stands in the way. Nothing was stored.
	Conflict Code = "conflict"

	// The reader of a log is too late. Go on after the position before the error's.
	EventsGone Code = "events_gone"

	// Try again with the same key. Nothing was stored, or the key will find it.
	RateLimited    Code = "rate_limited"
	Overloaded     Code = "overloaded"
	Paused         Code = "paused"
	NotOnThisNode  Code = "not_on_this_node"
	MigrationWaits Code = "migration_waits"
	Locked         Code = "instance_locked"
	Unavailable    Code = "database_unavailable"
	ShuttingDown   Code = "shutting_down"
	TimedOut       Code = "timeout"

	// A defect, in Pawl or in a workflow's code. The details are in the log.
	Internal Code = "internal_error"
)

// Error is the one error type of Pawl: a stable code, a message that is safe to
// show to the caller, and the cause, which is not.
type Error struct {
	Code     Code
	Message  string
	Fields   []FieldError // what is wrong with the payload, for InvalidPayload
	State    State        // the instance's state, where the code is about it
	Allowed  []string     // the transitions that the state allows, for IllegalTransition
	Position int64        // the first that is still in the log, for EventsGone
	Cause    error        // for the log only
}

// FieldError says what is wrong at one place of a payload.
type FieldError struct {
	Pointer string `json:"pointer"` // RFC 6901; "" is the whole payload
	Message string `json:"message"`
}

// Error returns the code and the detail, and the cause when there is one.
func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Detail(), e.Cause)
	}
	return string(e.Code) + ": " + e.Detail()
}

// Detail is the message with what is wrong where. It is safe to show to the caller.
func (e *Error) Detail() string {
	var b strings.Builder
	b.WriteString(e.Message)
	for _, f := range e.Fields {
		b.WriteString("; ")
		if f.Pointer != "" {
			b.WriteString(f.Pointer + ": ")
		}
		b.WriteString(f.Message)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether target is an *Error with the same code, so that
// errors.Is(err, &Error{Code: KeyReused}) asks for a code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == ""
}

// Errorf makes an Error whose message may be shown to the caller.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// AsError returns err as an *Error: what it wraps, or Internal with err as the cause.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: Internal, Message: "something failed here that is not yours", Cause: err}
}

// CodeOf returns the code of err, Internal for an error that has none, and ""
// for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return AsError(err).Code
}

// Refuse is what a guard or an action returns to refuse a command for a reason
// of the business: the caller gets GuardRefused with this message, and so does
// every retry.
func Refuse(format string, args ...any) error {
	return Errorf(GuardRefused, format, args...)
}
