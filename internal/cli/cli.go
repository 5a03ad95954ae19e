// Package cli is what all commands of the command line say in the same way:
// mistakes in how they were called.
package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// UsageError is a mistake in how a command was called.
type UsageError struct{ Err error }

// Error returns the text of the mistake.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the mistake.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef is a UsageError with a text as [fmt.Errorf] makes it.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

// NoSuchCommand refuses what stands where a command's name should.
func NoSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("there is no command %q", args[0])
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return errors.New(message)
}

// Operands checks that a command is given exactly what the names stand for, which
// are those of its line of usage.
func Operands(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fmt.Errorf("%s is missing", names[len(args)])
		case len(args) > len(names):
			return fmt.Errorf("%q is one argument too many", args[len(names)])
		}
		if i := slices.Index(args, ""); i >= 0 {
			return fmt.Errorf("%s is empty", names[i])
		}
		return nil
	}
}

// NotEmpty refuses flags that are given without a value, such as by a variable of the
// shell that is not set: they would select everything.
func NotEmpty(c *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if f := c.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
			return Usagef("--%s is empty", name)
		}
	}
	return nil
}

// Instance is the id that the flag --instance gives, zero where it is not given.
func Instance(c *cobra.Command) (uuid.UUID, error) {
	f := c.Flags().Lookup("instance")
	if !f.Changed {
		return uuid.Nil, nil
	}
	id, err := uuid.Parse(f.Value.String())
	if err == nil && id == uuid.Nil {
		err = errors.New("no instance has the nil UUID")
	}
	if err != nil {
		return uuid.Nil, Usagef("--instance is not a UUID: %w", err)
	}
	return id, nil
}
