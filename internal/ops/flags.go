package ops

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/internal/cli"
	"github.com/pawlhq/pawl/transitions"
)

// before has a command check something more of its flags before it runs.
func before(c *cobra.Command, check func() error) {
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

// tenantFlag is whose things a command is about; "" as the value is everybody's.
func tenantFlag(c *cobra.Command, tenant *string, value, usage string) {
	c.Flags().StringVar(tenant, "tenant", value, usage)
	before(c, func() error {
		if err := transitions.CheckTenant(*tenant); err != nil {
			return cli.Usagef("--tenant: %w", err)
		}
		return nil
	})
}

// caseFlags are the ways to name one instance, or a workflow alone; what is only for
// the help.
func caseFlags(c *cobra.Command, name, businessKey *string, instance *uuid.UUID, what string) {
	c.Flags().StringVar(name, "workflow", "", what+" this workflow")
	c.Flags().StringVar(businessKey, "business-key", "", what+" the instance with this business key, with --workflow")
	c.Flags().String("instance", "", what+" the instance with this id")
	before(c, func() (err error) {
		if err := cli.NotEmpty(c, "workflow", "business-key"); err != nil {
			return err
		}
		if *businessKey != "" && (*name == "" || c.Flags().Changed("instance")) {
			return cli.Usagef("--business-key needs --workflow, and no --instance")
		}
		*instance, err = cli.Instance(c)
		return err
	})
}

// limitFlag is how many entries a list may have.
func limitFlag(c *cobra.Command, limit *int) {
	c.Flags().IntVar(limit, "limit", 100, "list so many at most, 1 to 1000")
	before(c, func() error {
		if *limit < 1 || *limit > 1000 {
			return cli.Usagef("--limit %d is not 1 to 1000", *limit)
		}
		return nil
	})
}

// sayMore tells that a list was cut short.
func sayMore(c *cobra.Command, more bool) error {
	if !more {
		return nil
	}
	_, err := fmt.Fprintln(c.ErrOrStderr(), "there are more: see --limit")
	return err
}

// author is who changes something, and why.
type author struct{ by, reason string }

func (a *author) flags(c *cobra.Command) {
	c.Flags().StringVar(&a.by, "by", transitions.DefaultActor, "who does it, for the record")
	c.Flags().StringVar(&a.reason, "reason", "", "why, for the record")
}
