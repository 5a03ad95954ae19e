package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/workflow"
)

// Kind is the common key of instances that are adjacent in the index of lists. There are few kinds compared with instances.
type Kind struct {
	Tenant, Workflow string
	Definition       int
	State            workflow.State
	Open             bool
}

// Selected reports whether a filter selects such instances of a tenant.
func (k Kind) Selected(f *inspect.CountFilter) bool {
	return (f.Workflow == "" || f.Workflow == k.Workflow) && (f.Definition == 0 || f.Definition == k.Definition) &&
		(len(f.States) == 0 || slices.ContainsFunc(f.States, k.State.Has)) && (f.Open == nil || *f.Open == k.Open)
}

// kindColumns are the first columns of the index instance_list.
var kindColumns = []string{"tenant", "workflow", "definition", "state", "open"}

// query is a statement under construction, with its parameters.
type query struct {
	strings.Builder
	args []any
}

// add appends a piece; each %s in it is a parameter.
func (s *query) add(format string, args ...any) *query {
	places := make([]any, len(args))
	for i, a := range args {
		s.args = append(s.args, a)
		places[i] = fmt.Sprintf("$%d", len(s.args))
	}
	s.WriteString(fmt.Sprintf(format, places...))
	return s
}

// kinds lists the selected kinds among the first limit existing ones. whole reports that there are no more.
//
// It finds each kind from the previous one, with one index probe, however many instances there are.
func (l *lister) kinds(ctx context.Context, f *inspect.CountFilter, limit int) (list []Kind, whole bool, err error) {
	var s query
	s.walk(f)
	s.add(" LIMIT %s", limit+1)
	found, _ := l.query(ctx, &s) // CollectRows returns its error
	list, err = pgx.CollectRows(found, pgx.RowToStructByPos[Kind])
	whole = len(list) <= limit
	return slices.DeleteFunc(list, func(k Kind) bool { return !k.Selected(f) }), whole, err
}

// walk writes the statement that moves from kind to kind: those of the filter's workflow or tenant, or all of them.
func (s *query) walk(f *inspect.CountFilter) {
	// Fixed columns need their own conditions: of a row comparison the index uses only the columns from the first one on.
	fixed := 0
	var within query
	within.args = s.args
	// The condition of the index instance_list; PostgreSQL 17 drops a condition IS NOT NULL on a NOT NULL column, and with it the proof
	// that the index fits.
	within.WriteString("workflow >= ''")
	if f.Tenant != "" {
		within.add(" AND tenant = %s", f.Tenant)
		fixed = 1
		if f.Workflow != "" {
			within.add(" AND workflow = %s", f.Workflow)
			fixed = 2
		}
	}
	s.args = within.args
	all, rest := strings.Join(kindColumns, ", "), kindColumns[fixed:]
	s.WriteString(fmt.Sprintf(`WITH RECURSIVE each AS (
	(SELECT %[1]s FROM {pawl}.instance WHERE %[2]s ORDER BY %[1]s LIMIT 1)
	UNION ALL
	SELECT following.* FROM each CROSS JOIN LATERAL (SELECT %[1]s FROM {pawl}.instance i WHERE %[2]s
		AND (i.%[3]s) > (each.%[4]s) ORDER BY %[1]s LIMIT 1) AS following
) SELECT * FROM each AS kinds`, all, within.String(), strings.Join(rest, ", i."), strings.Join(rest, ", each.")))
}

// ofKind writes the conditions of a filter on the kind of an instance, each after an AND.
func (s *query) ofKind(f *inspect.CountFilter) {
	if f.Workflow != "" {
		s.add(" AND workflow = %s", f.Workflow)
	}
	if f.Definition != 0 {
		s.add(" AND definition = %s", f.Definition)
	}
	if len(f.States) > 0 {
		states := make([]string, len(f.States))
		for i, state := range f.States {
			states[i] = string(state)
		}
		s.add(` AND (state = ANY(%s::text[]) OR strpos(state, '(') > 0 AND`+
			` string_to_array(translate(split_part(state, ';', 1), '()', ',,'), ',') && %s::text[])`, states, states)
	}
	if f.Open != nil {
		s.add(" AND open = %s", *f.Open)
	}
}

// Leases counts the commands in flight that each node has leased, of a tenant, or of all tenants for "". It reads at most as many as are
// counted of a kind, the first to expire; whole reports that there are no more.
func (q *Reader) Leases(ctx context.Context, tenant string) (held map[string]int64, whole bool, err error) {
	held, whole = map[string]int64{}, true
	err = q.listing(ctx, "leases", func(l *lister) error {
		var s query
		s.add("SELECT claimed_by, count(*) FILTER (WHERE %s = '' OR tenant = %s), count(*) FROM (", tenant, tenant)
		s.add("SELECT claimed_by, tenant FROM {pawl}.command WHERE locked_until > '-infinity' ORDER BY locked_until LIMIT %s", inspect.MaxCounted+1)
		s.WriteString(") AS leased GROUP BY claimed_by")
		found, _ := l.query(ctx, &s) // ForEachRow returns its error
		var node string
		var leases, seen, all int64
		_, err := pgx.ForEachRow(found, []any{&node, &leases, &seen}, func() error {
			held[node] = leases
			all += seen
			return nil
		})
		whole = all <= inspect.MaxCounted
		return err
	})
	return held, whole, err
}
