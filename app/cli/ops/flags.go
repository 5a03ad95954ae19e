package ops

import (
	"encoding/hex"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/transitions"
)

type flagGroup = func(*cobra.Command)

// tenantFlag adds --tenant. Commands on one tenant have a default, the others select all tenants without it.
func tenantFlag(value, whose string) flagGroup {
	return func(c *cobra.Command) {
		usageText := whose
		if value == "" {
			usageText += "; defaults to all tenants"
		}
		flags.Tenant(c, new(string), value, usageText)
	}
}

func oneTenant(whose string) flagGroup  { return tenantFlag(transitions.DefaultTenant, whose) }
func allTenants(whose string) flagGroup { return tenantFlag("", whose) }

func limitFlag(c *cobra.Command) { flags.Limit(c, new(int)) }

func byFlag(c *cobra.Command) {
	c.Flags().String("by", transitions.DefaultActor, "actor, for the record")
}

func authorFlags(c *cobra.Command) {
	byFlag(c)
	c.Flags().String("reason", "", "reason, for the record")
}

func text(name, value, usageText string) flagGroup {
	return func(c *cobra.Command) { c.Flags().String(name, value, usageText) }
}

func boolean(name, usageText string) flagGroup {
	return func(c *cobra.Command) { c.Flags().Bool(name, false, usageText) }
}

func integer(name, usageText string) flagGroup {
	return func(c *cobra.Command) { c.Flags().Int64(name, 0, usageText) }
}

// instanceFlags select the instances of a workflow, or one instance.
func instanceFlags(c *cobra.Command) {
	flags.Workflow(c, new(string))
	c.Flags().String("business-key", "", "only the instance with this business key, with --workflow")
	c.Flags().String("instance", "", "only the instance with this id")
	flags.Before(c, func() error {
		if _, err := flags.Instance(c); err != nil {
			return err
		}
		if err := flags.NotEmpty(c, "business-key"); err != nil {
			return err
		}
		f := c.Flags()
		if f.Changed("business-key") && (!f.Changed("workflow") || f.Changed("instance")) {
			return usage.Errorf("--business-key needs --workflow, and no --instance")
		}
		return nil
	})
}

func hashFlag(c *cobra.Command) {
	c.Flags().String("hash", "", "SHA-256 of the body in hexadecimal, if several messages have the id")
	flags.Before(c, func() error {
		text := c.Flag("hash").Value.String()
		if b, err := hex.DecodeString(text); err != nil || len(b) != 0 && len(b) != 32 {
			return usage.Errorf("--hash is not 64 hexadecimal digits")
		}
		return nil
	})
}

// version parses an operand that is a version.
func version(text string) (int, error) {
	v, err := strconv.Atoi(text)
	if err != nil || v < 1 {
		return 0, usage.Errorf("%q is not a version from 1 on", text)
	}
	return v, nil
}
