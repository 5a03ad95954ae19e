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

// WithKeys does something with the API keys of a command's database.
type WithKeys func(c *cobra.Command, do func(ctx context.Context, t *apikey.Table) error) error

// KeysCommand is the command keys.
func KeysCommand(with WithKeys) *cobra.Command {
	k := &apiKeys{with: with}
	c := flags.Group("keys", "Make API keys, and take them back", k.createCommand(), k.listCommand(), k.rotateCommand(), k.revokeCommand())
	c.Long = `Make API keys, and take them back.

These commands work on the database, whether or not a node serves; so the first
key is made, before anybody can ask for one over REST. Nodes take keys with
"keys": true in the file of serve --auth, and notice changes within a second.`
	flags.Output(c, &k.json)
	return c
}

// apiKeys are the commands for API keys. They use the table directly, so that the first key can be created before any server accepts one.
type apiKeys struct {
	with WithKeys
	json bool
}

func (o *apiKeys) session(c *cobra.Command) *session { return &session{Command: c, json: o.json} }

// byCommandLine says who has made a key.
func byCommandLine(by string) string { return by + " (command line)" }

func (o *apiKeys) createCommand() *cobra.Command {
	var k apikey.Key
	var by string
	var grants []string
	var lasts time.Duration
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a key, and print its text",
		Long: `Make a key, and print its text, alone, on standard output. The database has only a
hash of that: it is never shown again.

A grant is a right, or a right and what it is for: read, submit:order/pay,
read:order#A-17, stream:@INSTANCE; see docs/protocol.md.`,
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
				return mistake(err)
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
	flags.Tenant(c, &k.Tenant, transitions.DefaultTenant, "whose things it is for")
	c.Flags().StringVar(&k.Actor, "actor", "", "whose commands those of the key are; the name without it")
	c.Flags().StringArrayVar(&k.Roles, "role", nil, "a role that workflows ask for; may be given several times; \"*\" is every role")
	c.Flags().StringArrayVar(&grants, "grant", nil, "what it may do, at least one; may be given several times")
	c.Flags().DurationVar(&lasts, "expires", 0, "how long it lasts, such as 2160h; without it until it is revoked")
	c.Flags().StringVar(&by, "by", transitions.DefaultActor, "who makes it, for the record")
	flags.Before(c, func() error { return flags.NotEmpty(c, "actor", "by") })
	return c
}

func (o *apiKeys) listCommand() *cobra.Command {
	var f apikey.Filter
	c := &cobra.Command{
		Use:   "list",
		Short: "List the keys, without their texts",
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

// standing says whether a key is taken.
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
		Short: "Give a key a new text, and print it",
		Long: `Give a key a new text, and print it, alone, on standard output. The text that the
key has is good for a while beside it (--overlap). While one is, the key is not
rotated again, unless the newest text was lost (--lost), or all former ones are to
end at once (--overlap 0).`,
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
	c.Flags().DurationVar(&r.Overlap, "overlap", api.DefaultOverlap, "how long the present text stays valid")
	c.Flags().StringVar(&by, "by", transitions.DefaultActor, "who gets the text, for the record")
	c.Flags().BoolVar(&r.Lost, "lost", false, "the newest text is lost: it ends at once, and the one before it stays valid")
	flags.Before(c, func() error {
		if r.Lost && c.Flags().Changed("overlap") {
			return usage.Errorf("--overlap keeps the present text valid, and --lost ends it: give one of them")
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
		Short: "Take a key back: within a second every node refuses it",
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
	c.Flags().StringVar(&by, "by", transitions.DefaultActor, "who does it, for the record")
	flags.Before(c, func() error { return flags.NotEmpty(c, "by") })
	return c
}

// mistake is an error of what was asked for, in words alone.
func mistake(err error) error {
	if known, is := errors.AsType[*workflow.Error](err); is {
		return usage.Errorf("%s", known.Detail())
	}
	return &usage.Error{Err: err}
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

// printText prints the text of a key, so that another program can take it, and says what it is where people look.
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
