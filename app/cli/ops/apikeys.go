package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// WithKeys calls do with the API keys of a command's database.
type WithKeys func(c *cobra.Command, do func(ctx context.Context, t *apikey.Table) error) error

// KeysCommand returns the command keys.
func KeysCommand(with WithKeys) *cobra.Command {
	k := &apiKeys{with: with}
	c := flags.Group("keys", "Manage API keys", k.createCommand(), k.listCommand(), k.rotateCommand(), k.revokeCommand())
	c.Long = `Manage API keys in the database. No node needs to run, so these commands can create the
first key. Nodes accept keys with "keys": true in the file of serve --auth, and notice
changes within a second.`
	flags.Output(c, &k.json)
	return c
}

// apiKeys are the commands for API keys. They use the table directly, so that the first key can be created before any server accepts one.
type apiKeys struct {
	with WithKeys
	json bool
}

func (o *apiKeys) session(c *cobra.Command) *session { return &session{Command: c, json: o.json} }

// byCommandLine returns the recorded creator of a key.
func byCommandLine(by string) string { return by + " (command line)" }

func (o *apiKeys) createCommand() *cobra.Command {
	var k apikey.Key
	var by string
	var grants []string
	var lasts time.Duration
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a key and print its text",
		Long: `Create a key and print its text on standard output. The database stores only a hash of the
text, so it is not shown again.

A grant is a right with an optional target: read, submit:order/pay, read:order#A-17,
stream:@INSTANCE; see docs/protocol.md.`,
		Example: "  pawl keys create billing --tenant acme --actor billing --grant read:order --grant submit:order/pay --expires 2160h",
		Args:    flags.Operands("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			if k.Name, k.CreatedBy = args[0], byCommandLine(by); k.Actor == "" {
				k.Actor = k.Name
			}
			for _, text := range grants {
				g, err := auth.ParseGrant(text)
				if err != nil {
					return &usage.Error{Err: err}
				}
				k.Grants = append(k.Grants, g)
			}
			now := time.Now()
			if c.Flags().Changed("expires") {
				k.ExpiresAt = now.Add(lasts)
			}
			if err := k.Check(now); err != nil {
				if known, is := errors.AsType[*workflow.Error](err); is {
					return usage.Errorf("%s", known.Detail())
				}
				return &usage.Error{Err: err}
			}
			return o.with(c, func(ctx context.Context, t *apikey.Table) error {
				made, text, err := t.Create(ctx, k)
				if err != nil {
					return err
				}
				return o.printText(c, &made, text)
			})
		},
	}
	flags.Tenant(c, &k.Tenant, transitions.DefaultTenant, "tenant of the key")
	c.Flags().StringVar(&k.Actor, "actor", "", "actor of requests with the key; defaults to the name")
	c.Flags().StringArrayVar(&k.Roles, "role", nil, "role of the key; may be given several times; \"*\" means all roles")
	c.Flags().StringArrayVar(&grants, "grant", nil, "grant of the key; at least one; may be given several times")
	c.Flags().DurationVar(&lasts, "expires", 0, "lifetime, such as 2160h; unlimited by default")
	c.Flags().StringVar(&by, "by", transitions.DefaultActor, "creator, for the record")
	flags.Before(c, func() error { return flags.NotEmpty(c, "actor", "by") })
	return c
}

func (o *apiKeys) listCommand() *cobra.Command {
	var f apikey.Filter
	c := &cobra.Command{
		Use:   "list",
		Short: "List keys without their texts",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.with(c, func(ctx context.Context, t *apikey.Table) error {
				list, more, err := t.List(ctx, f)
				if err != nil {
					return err
				}
				shown := make([]api.APIKey, len(list))
				for i := range list {
					shown[i] = api.APIKeyOf(&list[i])
				}
				s := o.session(c)
				header := []string{"id", "tenant", "name", "actor", "grants", "roles", "state", "last used"}
				err = s.print(api.APIKeyPage{Keys: shown}, func(w io.Writer) error { return output.Table(w, header, shown, rowOfKey) })
				if err != nil {
					return err
				}
				return output.More(c, more)
			})
		},
	}
	flags.Tenant(c, &f.Tenant, "", "tenant of the keys; defaults to all tenants")
	flags.Limit(c, &f.Limit)
	return c
}

func rowOfKey(k *api.APIKey) []string {
	return []string{k.ID, k.Tenant, output.OrNone(k.Name), output.OrNone(k.Actor), output.OrNone(strings.Join(k.Grants, " ")),
		output.OrNone(strings.Join(k.Roles, " ")), standing(k, time.Now()), output.Moment(k.LastUsedAt)}
}

// standing returns the state of a key.
func standing(k *api.APIKey, now time.Time) string {
	switch {
	case !k.RevokedAt.IsZero():
		return "revoked " + output.Moment(k.RevokedAt)
	case !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(now):
		return "ended " + output.Moment(k.ExpiresAt)
	case k.FormerEnds.After(now):
		return "two texts until " + output.Moment(k.FormerEnds)
	case !k.ExpiresAt.IsZero():
		return "until " + output.Moment(k.ExpiresAt)
	}
	return "good"
}

func (o *apiKeys) rotateCommand() *cobra.Command {
	var r apikey.Rotation
	var by string
	c := &cobra.Command{
		Use:   "rotate ID",
		Short: "Give a key a new text and print it",
		Long: `Give a key a new text and print it on standard output. The former text stays valid for the
time of --overlap. Until then the key cannot be rotated again, except with --lost or
--overlap 0.`,
		Args: anID,
		RunE: func(c *cobra.Command, args []string) error {
			r.By = byCommandLine(by)
			return o.with(c, func(ctx context.Context, t *apikey.Table) error {
				k, text, err := t.Rotate(ctx, "", args[0], r)
				if err != nil {
					return err
				}
				return o.printText(c, &k, text)
			})
		},
	}
	c.Flags().DurationVar(&r.Overlap, "overlap", api.DefaultOverlap, "time for which the present text stays valid")
	c.Flags().StringVar(&by, "by", transitions.DefaultActor, "actor, for the record")
	c.Flags().BoolVar(&r.Lost, "lost", false, "the newest text was lost: invalidate it, and keep the one before it")
	flags.Before(c, func() error {
		if r.Lost && c.Flags().Changed("overlap") {
			return usage.Errorf("--overlap and --lost exclude each other")
		}
		if r.Overlap < 0 || r.Overlap > apikey.MaxOverlap {
			return usage.Errorf("--overlap %s is not 0 to %s", r.Overlap, apikey.MaxOverlap)
		}
		return flags.NotEmpty(c, "by")
	})
	return c
}

func (o *apiKeys) revokeCommand() *cobra.Command {
	var by string
	c := &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a key: all nodes reject it within a second",
		Args:  anID,
		RunE: func(c *cobra.Command, args []string) error {
			return o.with(c, func(ctx context.Context, t *apikey.Table) error {
				k, err := t.Revoke(ctx, "", args[0], byCommandLine(by))
				if err != nil {
					return err
				}
				return o.session(c).report(api.APIKeyOf(&k), "key %s, %q of %s, is revoked", k.ID, output.Visible(k.Name), output.Visible(k.Tenant))
			})
		},
	}
	c.Flags().StringVar(&by, "by", transitions.DefaultActor, "actor, for the record")
	flags.Before(c, func() error { return flags.NotEmpty(c, "by") })
	return c
}

// anID checks the id of a key. An invalid one is not shown: it may be the text of a key.
func anID(c *cobra.Command, args []string) error {
	if err := flags.Operands("ID")(c, args); err != nil {
		return err
	}
	if !apikey.IsID(args[0]) {
		return errors.New(`ID is 12 letters and digits: the second part of a key's text, after "pawl_", and what "keys list" shows`)
	}
	return nil
}

// printText prints the text of a key on standard output, and its description on standard error.
func (o *apiKeys) printText(c *cobra.Command, k *apikey.Key, text string) error {
	said := fmt.Sprintf("key %s, %q of %s; its text is not shown again", k.ID, output.Visible(k.Name), output.Visible(k.Tenant))
	if _, err := fmt.Fprintln(c.ErrOrStderr(), said); err != nil {
		return err
	}
	return o.session(c).print(api.APIKeyText{APIKey: api.APIKeyOf(k), Key: text}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, text)
		return err
	})
}
