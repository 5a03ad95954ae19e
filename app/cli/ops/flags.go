package ops

import (
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/transitions"
)

// caseFlags are the ways to name one instance, or a workflow alone; what is only for
// the help.
func caseFlags(c *cobra.Command, name, businessKey *string, instance *uuid.UUID, what string) {
	c.Flags().StringVar(name, "workflow", "", what+" this workflow")
	c.Flags().StringVar(businessKey, "business-key", "", what+" the instance with this business key, with --workflow")
	c.Flags().String("instance", "", what+" the instance with this id")
	flags.Before(c, func() (err error) {
		if err := flags.NotEmpty(c, "workflow", "business-key"); err != nil {
			return err
		}
		if *businessKey != "" && (*name == "" || c.Flags().Changed("instance")) {
			return usage.Errorf("--business-key needs --workflow, and no --instance")
		}
		*instance, err = flags.Instance(c)
		return err
	})
}

// author is who changes something, and why.
type author struct{ by, reason string }

func (a *author) flags(c *cobra.Command) {
	c.Flags().StringVar(&a.by, "by", transitions.DefaultActor, "who does it, for the record")
	c.Flags().StringVar(&a.reason, "reason", "", "why, for the record")
}
