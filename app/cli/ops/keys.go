package ops

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
)

func (o *ops) keysCommand() *cobra.Command {
	var tenant, node string
	c := &cobra.Command{
		Use:   "keys",
		Short: "Count keys by status: in flight, finished, expired",
		Long: `Count keys by status, with due, expired and stuck ones. On a large table the
number of finished commands is an estimate, marked with "~", and commands in
flight are counted up to a limit.

Nodes record suppressed duplicates by scope once a minute; the database keeps them
for 30 days. With --node a node answers, and its own counts since its start are
shown too. If the node requires a credential, PAWL_TOKEN has an API key or a token
with the grant operate, and --tenant names its tenant; all tenants require the
grant operate:all.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			show := func(k inspect.Keys) error {
				return o.print(c, k, func(w io.Writer) error { return printKeys(w, &k) })
			}
			if node != "" {
				k, err := keysOf(c.Context(), node, tenant)
				if err != nil {
					return err
				}
				return show(k)
			}
			return o.run(c, func(ctx context.Context, e *engine.Engine) error {
				k, err := e.Admin().Keys(ctx, tenant)
				if err != nil {
					return err
				}
				return show(k)
			})
		},
	}
	flags.Tenant(c, &tenant, "", "whose keys; default is everybody's")
	nodeFlag(c, &node)
	return c
}

// keysOf asks a node.
func keysOf(ctx context.Context, node, tenant string) (k inspect.Keys, err error) {
	query := url.Values{}
	if tenant == "" {
		query.Set("all_tenants", "true")
	}
	r, err := flags.AskServer(ctx, "node", node, http.MethodGet, "v1/ops/keys", query, nil)
	if err != nil {
		return k, err
	}
	if tenant != "" && r.Header.Get("Authorization") == "" {
		r.Header.Set("Pawl-Tenant", tenant)
	}
	if err := askNode(r, &k); err != nil {
		return k, err
	}
	if k.Tenant != tenant {
		return k, fmt.Errorf("the credential in %s is one of the tenant %q, not of %q", flags.EnvToken, output.Visible(k.Tenant), tenant)
	}
	return k, nil
}

func printKeys(w io.Writer, k *inspect.Keys) error {
	type line struct {
		what   string
		count  string
		oldest time.Time
	}
	var lines []line
	for _, s := range k.Statuses {
		lines = append(lines, line{what: string(s.Status), count: output.Count(s.Count, s.Estimate)})
	}
	lines = append(lines,
		line{"of those in flight:", "", k.OldestInFlight},
		line{"  scheduled", output.Count(k.Scheduled, false), time.Time{}},
		line{"  due", output.Count(k.Due, false), k.OldestDue},
		line{"  stale", output.Count(k.Stale, false), k.OldestStale},
		line{"  lapsed", output.Count(k.Lapsed, false), k.OldestLapsed},
		line{"  stuck", output.Count(k.Stuck, false), time.Time{}},
		line{fmt.Sprintf("  %d attempts or more", inspect.ManyAttempts), output.Count(k.Attempts, false), time.Time{}},
		line{"waiting for retention:", "", k.OldestExpired},
		line{"  expired", output.Count(k.Expired, false), time.Time{}},
		line{"  forgotten", output.Count(k.Forgotten, false), time.Time{}},
		line{"dead messages", output.Count(k.DeadMessages, false), k.OldestDeadMessage})
	if k.AtLeast {
		lines = append(lines, line{what: "there is more in flight than is counted here"})
	}
	err := output.Table(w, []string{"keys", ">count", "oldest", "age"}, lines, func(l *line) []string {
		return []string{l.what, l.count, output.Moment(l.oldest), output.Since(k.At, l.oldest)}
	})
	if err != nil {
		return err
	}
	if err := printScopes(w, "attempts at this node since its start", k.Scopes); err != nil {
		return err
	}
	return printScopes(w, fmt.Sprintf("attempts at all nodes since %s", k.RecordedSince.Format(time.DateOnly)), k.Recorded)
}

func printScopes(w io.Writer, title string, scopes []inspect.ScopeCount) error {
	if len(scopes) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(w, "\n%s:\n", title); err != nil {
		return err
	}
	header := []string{"scope", "tenant", ">attempts", ">new", ">replayed", ">active", ">mismatched", ">expired", ">suppressed"}
	return output.Table(w, header, scopes, func(of *inspect.ScopeCount) []string {
		s := inspect.ScopeCount(*of)
		row := []string{output.OrNone(s.Scope), output.OrNone(s.Tenant)}
		for _, n := range []int64{s.Attempts(), s.New, s.Replayed, s.Active, s.Mismatched, s.Expired} {
			row = append(row, fmt.Sprint(n))
		}
		return append(row, fmt.Sprintf("%.1f %%", 100*s.Rate()))
	})
}
