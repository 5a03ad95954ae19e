// Package usage has errors for invalid arguments and configurations.
package usage

import "fmt"

// Error reports invalid flags or operands of a command, or an invalid configuration of a service.
type Error struct{ Err error }

// Error returns the text.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an [Error] with a text formatted by [fmt.Errorf].
func Errorf(format string, args ...any) error {
	return &Error{fmt.Errorf(format, args...)}
}
