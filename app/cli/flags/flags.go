// Package flags has the subcommands, operands and flags that commands share.
package flags

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Group returns a command that only has subcommands.
func Group(name, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  noSuchCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },

		SuggestionsMinimumDistance: 2, // typing mistakes
	}
	c.AddCommand(commands...)
	return c
}

// noSuchCommand rejects an unknown subcommand.
func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("there is no command %q", args[0])
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return errors.New(message)
}

// Operands checks that a command has the operands with these names, as in its usage line. Optional ones are in brackets, and last.
func Operands(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names) && !strings.HasPrefix(names[len(args)], "["):
			return fmt.Errorf("%s is missing", names[len(args)])
		case len(args) > len(names):
			return fmt.Errorf("%q is one argument too many", args[len(names)])
		}
		if i := slices.Index(args, ""); i >= 0 {
			return fmt.Errorf("%s is empty", strings.Trim(names[i], "[]"))
		}
		return nil
	}
}

// Before adds a check to a command, before it runs.
func Before(c *cobra.Command, check func() error) {
	others := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if others != nil {
			if err := others(c, args); err != nil {
				return err
			}
		}
		return check()
	}
}

// Tenant adds the flag --tenant. An empty default means all tenants.
func Tenant(c *cobra.Command, tenant *string, value, usageText string) {
	c.Flags().StringVar(tenant, "tenant", value, usageText)
	Before(c, func() error {
		if err := NotEmpty(c, "tenant"); err != nil {
			return err
		}
		if err := transitions.CheckTenant(*tenant); err != nil {
			return usage.Errorf("--tenant: %w", err)
		}
		return nil
	})
}

// Limit adds the flag --limit.
func Limit(c *cobra.Command, limit *int) {
	c.Flags().IntVar(limit, "limit", 100, "maximum number of entries, 1 to 1000")
	Before(c, func() error {
		if *limit < 1 || *limit > 1000 {
			return usage.Errorf("--limit %d is not 1 to 1000", *limit)
		}
		return nil
	})
}

// Workflow adds the flag --workflow, which selects the instances of a workflow.
func Workflow(c *cobra.Command, name *string) {
	c.Flags().StringVar(name, "workflow", "", "only this workflow")
	Before(c, func() error { return NotEmpty(c, "workflow") })
}

// States adds the flags --state and --open.
func States(c *cobra.Command) {
	c.Flags().StringArray("state", nil, "only this state; may be given several times")
	c.Flags().Bool("open", false, "only instances that are not in a final state; with --open=false only those that are")
}

// StatesOf returns the values of the flags of States.
func StatesOf(c *cobra.Command) (states []workflow.State, open *bool) {
	texts, _ := c.Flags().GetStringArray("state")
	for _, s := range texts {
		states = append(states, workflow.State(s))
	}
	return states, OptionalBool(c, "open")
}

// OptionalBool returns the value of a flag, or nil if it is not given.
func OptionalBool(c *cobra.Command, name string) *bool {
	value, err := c.Flags().GetBool(name)
	if err != nil || !c.Flags().Changed(name) {
		return nil
	}
	return &value
}

// Selection adds the flags that select instances: --workflow, --definition, --attr and those of States.
func Selection(c *cobra.Command) {
	Workflow(c, new(string))
	States(c)
	definition := c.Flags().Int("definition", 0, "only this version of the definition")
	c.Flags().StringToString("attr", nil, "only this attribute, as NAME=VALUE; may be given several times")
	Before(c, func() error {
		if c.Flags().Changed("definition") && *definition < 1 {
			return usage.Errorf("--definition %d is not a version from 1 on", *definition)
		}
		return nil
	})
}

// Output adds the flag -o to a command and its subcommands: a table, or JSON.
func Output(c *cobra.Command, json *bool) {
	c.PersistentFlags().VarP((*format)(json), "output", "o", "table or json")
	formats := cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp)
	_ = c.RegisterFlagCompletionFunc("output", formats) // fails only without the flag
}

// format reports whether the output is JSON.
type format bool

func (f *format) String() string {
	if *f {
		return "json"
	}
	return "table"
}

// Set parses the value.
func (f *format) Set(text string) error {
	if text != "table" && text != "json" {
		return errors.New("it is neither table nor json")
	}
	*f = text == "json"
	return nil
}

// Type returns the name of the values in help texts.
func (f *format) Type() string { return "format" }

// KeepEvents adds the flag --keep-events, the retention period of events.
func KeepEvents(c *cobra.Command, keep *time.Duration, usageText string) {
	c.Flags().DurationVar(keep, "keep-events", 30*24*time.Hour, usageText)
	Before(c, func() error {
		if *keep < 24*time.Hour {
			return usage.Errorf("--keep-events %s is less than a day: a reader that is offline overnight would miss events", *keep)
		}
		return nil
	})
}

// NotEmpty rejects flags with an empty value, such as an unset shell variable, which would select everything.
func NotEmpty(c *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if f := c.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
			return usage.Errorf("--%s is empty", name)
		}
	}
	return nil
}

// Instance returns the id of the flag --instance, or uuid.Nil if it is not given.
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
		return uuid.Nil, usage.Errorf("--instance is not a UUID: %w", err)
	}
	return id, nil
}
