// Package remote is the commands for people that ask a server, over HTTP and WebSocket: submit, get, list, history, can, watch and
// tail. They need no database, and link no engine.
package remote

import (
	"context"
	"io"
	"iter"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/internal/cli/flags"
	"github.com/pawlhq/pawl/internal/cli/output"
	"github.com/pawlhq/pawl/internal/usage"
)

// Commands are the commands. server is the URL that they ask where no other is named.
func Commands(server string) []*cobra.Command {
	return []*cobra.Command{submitCommand(server), getCommand(server), listCommand(server), historyCommand(server), canCommand(server),
		watchCommand(server), tailCommand(server)}
}

// asking is what the flags of a command say of who is asked, as whom, and how the answer is shown.
type asking struct {
	config client.Config
	json   bool
}

func (a *asking) flags(c *cobra.Command, server string) {
	flags.Servers(c, &a.config.URLs, server)
	flags.Output(c, &a.json)
	flags.Tenant(c, &a.config.Tenant, "", "whose things; where a server asks for credentials, "+flags.EnvToken+" says that")
	c.Flags().StringVar(&a.config.Actor, "actor", "", "who asks; with a credential, whom it acts as")
	c.Flags().StringSliceVar(&a.config.Roles, "role", nil,
		"roles of who asks; where a server asks for credentials, "+flags.EnvToken+" says that; without it every role")
	flags.Before(c, func() error { return flags.NotEmpty(c, "actor") })
}

// attempts is how often a person is let wait: not for long. What goes on until it is ended takes the client's default.
const attempts = 5

// ask has a client do something.
func (a *asking) ask(c *cobra.Command, attempts int, do func(ctx context.Context, asked *client.Client) error) error {
	a.config.Retry.Attempts = attempts
	asked, err := flags.Dial(a.config)
	if err != nil {
		return err
	}
	defer asked.Close()
	return flags.Answered(c.Context(), do(c.Context(), asked))
}

// show prints an answer: as JSON, with the names that it has over HTTP, or as text for people.
func (a *asking) show(c *cobra.Command, v any, text func(w io.Writer) error) error {
	if a.json {
		return output.JSON(c.OutOrStdout(), v)
	}
	return text(c.OutOrStdout())
}

// list prints some of what comes, up to a limit, and says where there is more.
func list[T any](a *asking, c *cobra.Command, entries iter.Seq2[T, error], limit int, header []string, row func(*T) []string) error {
	found, more := []T{}, false
	for e, err := range entries {
		if err != nil {
			return err
		}
		if more = len(found) == limit; more {
			break
		}
		found = append(found, e)
	}
	return a.show(c, found, func(w io.Writer) error {
		if err := output.Table(w, header, found, row); err != nil {
			return err
		}
		return output.More(c, more)
	})
}

// instanceUsage is for the help of commands that take one.
const instanceUsage = "INSTANCE is an id, or WORKFLOW#BUSINESS-KEY, such as order#c-1:k-9."

// instanceOf reads what names an instance.
func instanceOf(text string) (client.Target, error) {
	if id, err := uuid.Parse(text); err == nil && id != uuid.Nil {
		return client.ID(id), nil
	}
	workflow, key, found := strings.Cut(text, "#")
	if !found || workflow == "" || key == "" {
		return client.Target{}, usage.Errorf("%q names no instance: give its id, or WORKFLOW#BUSINESS-KEY", text)
	}
	return client.BusinessKey(workflow, key), nil
}
