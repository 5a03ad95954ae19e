// Package remote has the client commands, which call a server over HTTP and WebSocket: submit, get, list, history, children, can, watch
// and tail. On a database they call the API in this process.
package remote

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/workflow"
)

// Commands returns the commands. server is the default of --server.
func Commands(server string, database flags.Database) []*cobra.Command {
	var all []*cobra.Command
	for _, command := range []func(asking) *cobra.Command{submitCommand, getCommand, listCommand, historyCommand, childrenCommand, canCommand,
		watchCommand, tailCommand} {
		all = append(all, command(asking{server: server, database: database}))
	}
	return all
}

// asking has the flags that all commands have.
type asking struct {
	server   string // the default
	database flags.Database
	submits  bool   // for the command submit
	workflow string // of the operands and flags; may be empty

	config client.Config
	json   bool
}

func (a *asking) flags(c *cobra.Command) {
	flags.Servers(c, &a.config.URLs, &a.config.PlainHTTP, a.server)
	flags.Output(c, &a.json)
	flags.Tenant(c, &a.config.Tenant, "", "tenant of the request; a credential determines it")
	c.Flags().StringVar(&a.config.Actor, "actor", "", "actor of the request; with a credential, the actor to act as")
	c.Flags().StringSliceVar(&a.config.Roles, "role", nil,
		"roles of the caller, all by default; a credential determines them")
	flags.Before(c, func() error { return flags.NotEmpty(c, "actor") })
}

// attempts is the number of attempts of an interactive command. Commands that run until they are stopped use the client's default.
const attempts = 5

// ask calls do with a client of the server, or of the API on the database.
func (a *asking) ask(c *cobra.Command, attempts int, do func(ctx context.Context, asked *client.Client) error) error {
	a.config.Retry.Attempts = attempts
	byDatabase, err := flags.ByDatabase(c)
	switch {
	case err != nil:
		return err
	case byDatabase:
		return a.database(c, flags.Use{Commits: a.submits, Records: a.submits}, func(ctx context.Context, h *http.Client) error {
			a.config.URLs, a.config.HTTP = []string{flags.InProcess}, h
			asked, err := client.New(a.config)
			if err != nil {
				return err
			}
			return flags.Answered(ctx, a.elsewhere(a.nearest(ctx, asked, do(ctx, asked))))
		})
	}
	asked, err := flags.Dial(a.config)
	if err != nil {
		return err
	}
	defer asked.Close()
	return flags.AnsweredByServer(c, a.nearest(c.Context(), asked, do(c.Context(), asked)))
}

// nearest adds a suggestion to the error for an unknown workflow.
func (a *asking) nearest(ctx context.Context, asked *client.Client, err error) error {
	if err == nil || a.workflow == "" || workflow.CodeOf(err) != workflow.WorkflowNotFound {
		return err
	}
	list, failed := asked.Workflows(ctx)
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	if failed != nil || slices.Contains(names, a.workflow) {
		return err
	}
	return fmt.Errorf("%w; %s", err, flags.Nearest(a.workflow, names))
}

// elsewhere explains the error for a command on a database whose workflow this program does not have.
func (a *asking) elsewhere(err error) error {
	if err == nil || !a.submits || workflow.CodeOf(err) != workflow.WorkflowNotFound {
		return err
	}
	return fmt.Errorf("%w; on a database this program decides the command, with the workflows that it was built with: "+
		"use the program that has this one, or ask a server (--server)", err)
}

// warnOfStates warns about states that no workflow declares, with a suggestion. They are not an error: instances on another version may be
// in them.
func (a *asking) warnOfStates(ctx context.Context, c *cobra.Command, asked *client.Client, states []workflow.State) {
	if len(states) == 0 {
		return
	}
	list, err := asked.Workflows(ctx)
	if err != nil {
		return // which is told where the list is asked for
	}
	who, known := "no workflow declares", []string{}
	for _, w := range list {
		if a.workflow != "" && w.Name != a.workflow {
			continue
		}
		for _, s := range w.States {
			known = append(known, string(s))
		}
	}
	if a.workflow != "" {
		who = fmt.Sprintf("the workflow %q does not declare", a.workflow)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, s := range states {
		if !slices.Contains(known, string(s)) {
			c.PrintErrln(output.Visible(fmt.Sprintf("%s a state %q; %s", who, s, flags.Nearest(string(s), known))))
		}
	}
}

// list prints entries up to a limit, and warns if there are more. In JSON it prints the page of the HTTP API that page returns. It
// returns the number of entries.
func list[T any](a *asking, c *cobra.Command, entries iter.Seq2[T, error], limit int, header []string, row func(*T) []string,
	page func(found []T, more bool) (any, error)) (int, error) {
	found, more := []T{}, false
	for e, err := range entries {
		if err != nil {
			return 0, err
		}
		if more = len(found) == limit; more {
			break
		}
		found = append(found, e)
	}
	var v any
	if a.json {
		var err error
		if v, err = page(found, more); err != nil {
			return 0, err
		}
	}
	err := output.Print(c, a.json, v, func(w io.Writer) error { return output.Table(w, header, found, row) })
	if err != nil {
		return 0, err
	}
	return len(found), output.More(c, more)
}

// idOfTarget returns the id of an instance; text is its operand.
func idOfTarget(ctx context.Context, asked *client.Client, of client.Target, text string) (uuid.UUID, error) {
	if id, err := uuid.Parse(text); err == nil {
		return id, nil
	}
	v, err := asked.Instance(ctx, of)
	return v.ID, err
}

// instanceUsage is part of help texts.
const instanceUsage = "INSTANCE is an id, or WORKFLOW#BUSINESS-KEY, such as order#c-1:k-9."

// instance parses an operand.
func (a *asking) instance(text string) (client.Target, error) {
	if id, err := uuid.Parse(text); err == nil && id != uuid.Nil {
		return client.ID(id), nil
	}
	name, key, found := strings.Cut(text, "#")
	if !found || name == "" || key == "" {
		return client.Target{}, usage.Errorf("%q names no instance: give its id, or WORKFLOW#BUSINESS-KEY", text)
	}
	a.workflow = name
	return client.BusinessKey(name, key), nil
}
