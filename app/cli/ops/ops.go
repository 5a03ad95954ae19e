// Package ops has the commands for operators. Each is a row of a table over routes of the API, which answers at a server, or in this
// process on a database.
package ops

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/transitions"
)

// DryRun decides an operation on an instance on a command's database, and writes nothing. after is the instance as it would be. The API
// answers with the receipt only.
type DryRun func(c *cobra.Command, cmd transitions.Command, op transitions.Operation) (r transitions.Receipt, after *transitions.Instance,
	err error)

// Command returns the command ops.
func Command(database flags.Database, dryRun DryRun) *cobra.Command {
	o := &ops{database: database, dryRun: dryRun}
	c := o.group("ops", "Inspect the installation and resolve what needs an operator", operations)
	c.AddCommand(o.group("sinks", "Inspect and control sinks and their dead letters", sinkOperations),
		o.group("inbox", "Manage dead messages and read stored messages", inboxOperations))
	c.Long = c.Short + `.

These commands work on the database, whether or not a node serves: the program runs
the API in its own process, with the rights of an operator of all tenants. Nodes notice
changes within seconds. Times are UTC.`
	flags.Output(c, &o.json)
	return c
}

// ops has what all commands share.
type ops struct {
	database flags.Database
	dryRun   DryRun
	json     bool
}

// operation is a command.
type operation struct {
	use, short, long string // use is the name and the operands
	flags            []func(*cobra.Command)
	operands         func(*cobra.Command, []string) error // defaults to those of use
	check            func(*session) error                 // validates the flags; optional
	commits          bool                                 // on a database this program commits commands
	run              func(context.Context, *session) error
}

// session is a call of a command.
type session struct {
	*cobra.Command
	args   []string
	api    flags.API
	dryRun DryRun
	json   bool
}

func (o *ops) group(name, short string, table []operation) *cobra.Command {
	c := flags.Group(name, short)
	for i := range table {
		c.AddCommand(o.command(&table[i]))
	}
	return c
}

func (o *ops) command(op *operation) *cobra.Command {
	c := &cobra.Command{Use: op.use, Short: op.short, Args: op.operands}
	if op.long != "" {
		c.Long = op.short + ".\n\n" + op.long
	}
	if c.Args == nil {
		c.Args = flags.Operands(strings.Fields(op.use)[1:]...)
	}
	for _, add := range op.flags {
		add(c)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		s := &session{Command: c, args: args, json: o.json, dryRun: o.dryRun}
		if err := s.check(); err != nil {
			return err
		}
		if op.check != nil {
			if err := op.check(s); err != nil {
				return err
			}
		}
		if op.use == "correct" && s.enabled("dry-run") {
			return s.tryCorrection()
		}
		// Run a command with the API of a node, or on the database.
		if node := s.text("node"); node != "" {
			s.api = flags.NodeAPI(node, s.text("tenant"))
			return op.run(s.Context(), s)
		}
		use := flags.Use{Commits: op.commits}
		if s.Flags().Lookup("keep-events") != nil {
			use.KeepEvents, _ = s.Flags().GetDuration("keep-events")
		}
		return o.database(s.Command, use, func(ctx context.Context, h *http.Client) error {
			s.api = flags.API{URL: flags.InProcess, HTTP: h, Header: http.Header{}}
			for name, flag := range map[string]string{"Pawl-Tenant": "tenant", "Pawl-Actor": "by"} {
				if v := s.text(flag); v != "" {
					s.api.Header.Set(name, v)
				}
			}
			return op.run(ctx, s)
		})
	}
	return c
}

// check validates the flags that several commands have.
func (s *session) check() error {
	for _, name := range []string{"actor", "business-key", "by", "consumer", "data", "hash", "id", "proof", "status", "type", "workflow"} {
		if s.Flags().Lookup(name) == nil {
			continue
		}
		if err := flags.NotEmpty(s.Command, name); err != nil {
			return err
		}
	}
	switch {
	case s.Flags().Lookup("by") == nil:
	case s.text("node") != "" && s.given("by"):
		return usage.Errorf("--by goes with the database: at a node the credential determines the actor")
	case transitions.TextProblem(s.text("by"), transitions.MaxActor) != "":
		return usage.Errorf("--by %s", transitions.TextProblem(s.text("by"), transitions.MaxActor))
	}
	return nil
}

// text returns the value of a flag, "" if the command does not have it.
func (s *session) text(name string) string {
	if f := s.Flags().Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// optional returns the value of a flag, or nil if it is not given.
func (s *session) optional(name string) *string {
	if !s.given(name) {
		return nil
	}
	v := s.text(name)
	return &v
}

// enabled returns the value of a boolean flag.
func (s *session) enabled(name string) bool { return s.text(name) == "true" }

func (s *session) given(name string) bool { return s.Flags().Changed(name) }

// parameters are the flags that are query parameters, with their names.
var parameters = map[string]string{"workflow": "workflow", "business-key": "business_key", "instance": "instance", "limit": "limit",
	"status": "status", "actor": "actor", "proof": "proof", "type": "type", "consumer": "consumer", "id": "message",
	"definition": "definition", "state": "state", "open": "open"}

// query returns the flags that are given as query parameters. An empty --tenant means all tenants.
func (s *session) query() url.Values {
	q := url.Values{}
	for flag, name := range parameters {
		if s.Flags().Lookup(flag) == nil || !s.given(flag) {
			continue
		}
		if list, err := s.Flags().GetStringArray(flag); err == nil {
			q[name] = list
		} else {
			q.Set(name, s.text(flag))
		}
	}
	if s.Flags().Lookup("attr") != nil {
		attributes, _ := s.Flags().GetStringToString("attr")
		for name, value := range attributes {
			q.Set("attr."+name, value)
		}
	}
	return s.ofAllTenants(q)
}

// ofAllTenants adds the parameter for all tenants if the command has a flag --tenant without a value.
func (s *session) ofAllTenants(q url.Values) url.Values {
	if s.Flags().Lookup("tenant") != nil && s.text("tenant") == "" {
		q.Set("all_tenants", "true")
	}
	return q
}

// path returns the segments of a path in which {0} and {1} stand for the operands.
func (s *session) path(template string) []string {
	parts := strings.Split(template, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, "{") {
			parts[i] = s.args[p[1]-'0']
		}
	}
	return parts
}

// call sends a request and decodes the response.
func call[T any](ctx context.Context, s *session, r flags.Request) (v T, err error) {
	body, err := s.api.Call(ctx, r)
	if err != nil {
		return v, err
	}
	return flags.Decode[T](body)
}

// print prints a value as JSON, or as text.
func (s *session) print(v any, text func(w io.Writer) error) error {
	return output.Print(s.Command, s.json, v, text)
}

// report prints what was done: as JSON, or in a line.
func (s *session) report(v any, format string, args ...any) error {
	return s.print(v, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, format+"\n", args...)
		return err
	})
}

// show requests a path and prints the response.
func show[T any](path string, print func(io.Writer, *T) error) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		v, err := call[T](ctx, s, flags.Request{Path: s.path(path), Query: s.query()})
		if err != nil {
			return err
		}
		return s.print(&v, func(w io.Writer) error { return print(w, &v) })
	}
}

// page is a list as the API returns it.
type page struct {
	Next string         `json:"next"`
	List jsontext.Value `json:",embed"`
}

// list requests a page and prints its entries as a table, with a row for each. It reports if there are more.
func list[P, T any](path string, entries func(*P) []T, header []string, row func(*T) []string) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		body, err := s.api.Call(ctx, flags.Request{Path: s.path(path), Query: s.query()})
		if err != nil {
			return err
		}
		return printPage(s, body, func(w io.Writer, p *P) error { return output.Table(w, header, entries(p), row) })
	}
}

// printPage prints a page without its cursor, and reports if there are more.
func printPage[P any](s *session, body []byte, text func(io.Writer, *P) error) error {
	p, err := flags.Decode[page](body)
	if err != nil {
		return err
	}
	if err := s.print(p.List, func(w io.Writer) error {
		v, err := flags.Decode[P](body)
		if err != nil {
			return err
		}
		return text(w, &v)
	}); err != nil {
		return err
	}
	return output.More(s.Command, p.Next != "")
}

// reason is the body of requests that have only that.
type reason struct {
	Reason string `json:"reason,omitempty"`
}
