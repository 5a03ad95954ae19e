package pawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
)

func (o *ops) keysCommand() *cobra.Command {
	var tenant, node string
	c := &cobra.Command{
		Use:   "keys",
		Short: "Count keys by status: in flight, finished, expired",
		Long: `Count keys by status, with what is due, stale, stuck or past its horizon. On a
large table what is finished is an estimate, marked with "~", and what is in
flight is counted up to a bound.

How many duplicates were suppressed, by scope, is counted by each node since its
start, because a replay writes nothing: --node asks a node for everything.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkTenant(tenant); err != nil {
				return err
			}
			show := func(k transitions.Keys) error {
				if o.json {
					return printJSON(c.OutOrStdout(), k)
				}
				return printKeys(c.OutOrStdout(), &k)
			}
			if node != "" {
				k, err := keysOf(c.Context(), node, tenant)
				if err != nil {
					return err
				}
				return show(k)
			}
			return o.run(c, func(ctx context.Context, e *engine.Engine) error {
				k, err := e.Keys(ctx, tenant)
				if err != nil {
					return err
				}
				return show(k)
			})
		},
	}
	c.Flags().StringVar(&tenant, "tenant", "", "whose keys; default is everybody's")
	c.Flags().StringVar(&node, "node", "", "address of a node to ask, such as http://127.0.0.1:8080, instead of the database")
	return c
}

// nodeTimeout bounds how long a node may take to answer.
const nodeTimeout = 10 * time.Second

// keysOf asks a node.
func keysOf(ctx context.Context, node, tenant string) (k transitions.Keys, err error) {
	address, err := url.Parse(node)
	if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return k, usagef("--node is not the address of a node, such as http://127.0.0.1:8080")
	}
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	address = address.JoinPath("v1/ops/keys")
	if tenant == "" {
		address.RawQuery = "all_tenants=true"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return k, err
	}
	if tenant != "" {
		r.Header.Set("Pawl-Tenant", tenant)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return k, fmt.Errorf("ask the node: %w", err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode != http.StatusOK {
		var problem struct{ Detail string }
		_ = json.NewDecoder(answer.Body).Decode(&problem) // the status says enough
		return k, fmt.Errorf("the node answered %s: %s", answer.Status, problem.Detail)
	}
	if err := json.NewDecoder(answer.Body).Decode(&k); err != nil {
		return k, fmt.Errorf("the answer of the node: %w", err)
	}
	return k, nil
}

func printKeys(w io.Writer, k *transitions.Keys) error {
	var rows [][]string
	for _, s := range k.Statuses {
		rows = append(rows, []string{string(s.Status), count(s.Count, s.Estimate), "-", "-"})
	}
	for _, r := range []struct {
		what   string
		count  string
		oldest time.Time
	}{
		{"of those in flight:", "", k.OldestInFlight},
		{"  scheduled", count(k.Scheduled, false), time.Time{}},
		{"  due", count(k.Due, false), k.OldestDue},
		{"  stale", count(k.Stale, false), k.OldestStale},
		{"  stuck", count(k.Stuck, false), time.Time{}},
		{fmt.Sprintf("  %d attempts or more", transitions.ManyAttempts), count(k.Attempts, false), time.Time{}},
		{"waiting for retention:", "", k.OldestExpired},
		{"  expired", count(k.Expired, false), time.Time{}},
		{"  forgotten", count(k.Forgotten, false), time.Time{}},
		{"dead messages", count(k.DeadMessages, false), k.OldestDeadMessage},
	} {
		rows = append(rows, []string{r.what, r.count, moment(r.oldest), since(k.At, r.oldest)})
	}
	if k.AtLeast {
		rows = append(rows, []string{"there is more in flight than is counted here", "", "-", "-"})
	}
	if err := printTable(w, []string{"keys", ">count", "oldest", "age"}, rows); err != nil || len(k.Scopes) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return printScopes(w, k.Scopes)
}

func printScopes(w io.Writer, list []transitions.ScopeCount) error {
	var rows [][]string
	for i := range list {
		s := &list[i]
		row := []string{orNone(s.Scope), orNone(s.Tenant)}
		for _, n := range []int64{s.Attempts(), s.New, s.Replayed, s.Active, s.Mismatched, s.Expired} {
			row = append(row, fmt.Sprint(n))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.1f %%", 100*s.Rate())))
	}
	return printTable(w, []string{"scope", "tenant", ">attempts", ">new", ">replayed", ">active", ">mismatched", ">expired", ">suppressed"}, rows)
}

// count is a number, and says of an estimate that it is one.
func count(n int64, estimate bool) string {
	if estimate {
		return fmt.Sprintf("~%d", n)
	}
	return fmt.Sprint(n)
}
