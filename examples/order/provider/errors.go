package provider

import (
	"errors"
	"fmt"
)

// Error is any answer of the provider but success, and the body of that answer.
type Error struct {
	Status  int    `json:"-"`    // of HTTP
	Code    string `json:"code"` // see the constants
	Message string `json:"message"`
}

// The codes of an Error.
const (
	Invalid     = "invalid"     // 400: the request is malformed
	Declined    = "declined"    // 402: the customer cannot pay so
	NotCharged  = "not_charged" // 404: no charge with this key has happened
	Voided      = "voided"      // 409: refunded before it was charged
	KeyReused   = "key_reused"  // 422: the key came before, with another request
	Unavailable = "unavailable" // any status: an answer that decides nothing
)

// Error says who refuses and why.
func (e *Error) Error() string { return fmt.Sprintf("payment provider: %s: %s", e.Code, e.Message) }

// IsFinal reports whether the provider has decided, so that the same request
// would be refused again however often it is sent. After any other error the
// request may be sent again with its key.
func IsFinal(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code != Unavailable
}

func refusal(status int, code, format string, args ...any) *Error {
	return &Error{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}
