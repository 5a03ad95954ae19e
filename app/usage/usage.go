// Package usage is the mistakes in how a program was called or configured.
package usage

import "fmt"

// Error is a mistake in how something was called: of a command, its flags and
// operands; of a service, its configuration.
type Error struct{ Err error }

// Error returns the text of the mistake.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the mistake.
func (e *Error) Unwrap() error { return e.Err }

// Errorf is an [Error] with a text as [fmt.Errorf] makes it.
func Errorf(format string, args ...any) error {
	return &Error{fmt.Errorf(format, args...)}
}
