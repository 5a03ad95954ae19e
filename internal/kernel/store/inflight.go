package store

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/transitions"
)

// part is a part of a list of commands in flight, read from one index in its order. Each command in flight is in one of the indexes that
// serve the nodes, and none has all; an index for lists would cost every step.
type part struct {
	from string // the condition of the index, and of a range of it; $1 is the tenant
	only string // a condition that the index does not know; "" none

	// The columns that it is in the order of, without a tenant that is the same for all; "" none.
	group, subgroup, at string
	byInstance          bool // and in one place in the order of the instances
}

// The parts of the list. Leases, and commands held or released by SQL callers, are few; these and the deferred commands are of all tenants.
var (
	stuckPart  = part{from: "tenant = $1 AND stuck IS NOT NULL", at: "updated_at"}
	leasedPart = part{from: "locked_until IS NOT NULL", at: "locked_until"}
	heldPart   = part{from: "held_until IS NOT NULL", at: "held_until"}
	backPart   = part{from: "given_up_at IS NOT NULL", at: "given_up_at"}
	workPart   = part{from: "tenant = $1 AND run_at IS NOT NULL AND phase || '' <> 'scheduled'",
		group: "workflow", subgroup: "transition", at: "run_at"}
	asidePart = part{from: "paused IS NOT NULL", group: "paused", subgroup: "tenant", at: "run_at"}
	laterPart = part{from: "tenant = $1 AND " + laterOfTenants, at: "run_at", byInstance: true}
)

// where returns the part with a condition outside the index: other rows are examined and skipped.
func (p part) where(condition string) part {
	p.only = condition
	return p
}

// within returns the part with a range of its times.
func (p part) within(condition string) part {
	p.from += " AND " + condition
	return p
}

const (
	isDue = "run_at <= statement_timestamp()"

	isPending   = "status = '" + string(transitions.Pending) + "'"
	isRetryable = "status = '" + string(transitions.FailedRetryable) + "'"
)

// partsOf are the parts of a list, by its kind. They count what KeysSQL counts.
var partsOf = map[inspect.CommandKind][]part{
	inspect.CommandsAll:        {stuckPart, leasedPart, heldPart, backPart, workPart, asidePart, laterPart},
	inspect.CommandsPending:    {workPart.where(isPending), asidePart.where(isPending), laterPart.where(isPending)},
	inspect.CommandsProcessing: {leasedPart, heldPart},
	inspect.CommandsRetryable:  {stuckPart, backPart, workPart.where(isRetryable), asidePart.where(isRetryable), laterPart.where(isRetryable)},
	inspect.CommandsScheduled:  {laterPart.within("run_at > statement_timestamp()")},
	inspect.CommandsDue:        {workPart.where(isDue), asidePart.where(isDue), laterPart.within(isDue)},
	inspect.CommandsStale:      {leasedPart.within("locked_until <= statement_timestamp()")},
	inspect.CommandsLapsed:     {heldPart.within("held_until <= statement_timestamp()")},
	inspect.CommandsStuck:      {stuckPart},
}

// maxProofs is how many entries of an index one page looks at if it has to read the requests of the commands, which may be large.
const maxProofs = 1000

// beginInFlight is beginLists, and puts those in order that are in one place of an index.
const beginInFlight = beginLists + "; SET LOCAL enable_incremental_sort = on"

// CommandsInFlight reads a page. The filter is complete.
func (q *Reader) CommandsInFlight(ctx context.Context, f inspect.CommandFilter) (page inspect.CommandPage, err error) {
	parts := partsOf[f.Kind]
	err = pgx.BeginTxFunc(ctx, q.pool, pgx.TxOptions{BeginQuery: beginInFlight}, func(tx pgx.Tx) error {
		l := &lister{q, tx}
		for f.After.Part < len(parts) {
			if err := l.commands(ctx, parts[f.After.Part], &f, &page); err != nil || page.More {
				return err
			}
			f.After = inspect.CommandPlace{Part: f.After.Part + 1}
		}
		return nil
	})
	if err != nil {
		return inspect.CommandPage{}, ReadError("commands in flight", err)
	}
	if !page.More {
		page.Next = inspect.CommandPlace{}
	}
	return page, nil
}

// commands adds the commands of a part up to the limit of the page, or of the entries that it examines.
func (l *lister) commands(ctx context.Context, p part, f *inspect.CommandFilter, page *inspect.CommandPage) error {
	s := p.page(f, f.Limit-len(page.Commands))
	found, err := ask(ctx, l.tx, l.in(s.String()), s.args...)
	if err != nil {
		return err
	}
	defer found.Close()
	var enough *inspect.CommandPlace
	for found.Next() {
		row := rows.Read(found.RawValues())
		record, err := readRecord(row, briefFields)
		if err != nil {
			return err
		}
		reason, proof, businessKey := row.Text(), row.Text(), row.Text()
		at := inspect.CommandPlace{Part: f.After.Part, Group: row.Text(), Subgroup: row.Text(), At: row.Time(), Instance: row.UUID(),
			Scope: row.Text(), Key: row.Text()}
		if row.Bool() { // all that are in this place have been looked at, and none behind it
			enough = &inspect.CommandPlace{Part: at.Part, Group: at.Group, Subgroup: at.Subgroup, At: at.At, Instance: at.Instance}
		}
		if err := row.Err(); err != nil {
			return err
		}
		switch {
		case record == nil: // it is not selected
		case len(page.Commands) == f.Limit:
			page.More = true
			return nil
		default:
			record.Reason, record.Proof, record.BusinessKey = reason, proof, businessKey
			page.Commands, page.Next = append(page.Commands, *record), at
		}
	}
	if enough != nil {
		page.More, page.Next = true, *enough
	}
	return found.Err()
}

// page returns the statement that reads up to limit commands of a part, and one more. It examines entries of the index in order, as many as
// a page may, plus those with the same place as the last. It reads the selected rows, ordered by key within a place, and reports the last
// examined entry.
func (p part) page(f *inspect.CommandFilter, limit int) *query {
	scanned := maxScanned
	if f.Proof != "" {
		scanned = maxProofs
	}
	s := &query{args: []any{f.Tenant}}
	s.WriteString("SELECT " + briefSelect + ", c.request->>'reason', c.request->>'proof', " +
		"coalesce(i.business_key, c.request->>'business_key', ''), e.grp, e.sub, e.at, e.instance, e.scope, e.key, e.n = " + strconv.Itoa(scanned) +
		" FROM (SELECT * FROM (SELECT x.*, row_number() OVER (ORDER BY " + p.order("grp", "sub", "at") + ") AS n FROM (SELECT ")
	columns := p.order(p.group, p.subgroup, p.at)
	s.WriteString(cmp.Or(p.group, "''") + " AS grp, " + cmp.Or(p.subgroup, "''") + " AS sub, " + p.at +
		" AS at, instance, scope, key, tenant = $1")
	if p.only != "" {
		s.WriteString(" AND " + p.only)
	}
	if f.Workflow != "" {
		s.add(" AND workflow = %s", f.Workflow)
	}
	if f.Actor != "" {
		s.add(" AND actor = %s", f.Actor)
	}
	if f.Proof != "" {
		s.add(" AND coalesce(strpos(request->>'proof', %s), 0) > 0", f.Proof)
	}
	from := " > ("
	if f.After.Scope != "" {
		s.WriteString(" AND (" + columns + ", scope, key) > (")
		p.place(s, &f.After).add(", %s, %s)", f.After.Scope, f.After.Key)
		from = " >= ("
	}
	s.WriteString(" AS hit FROM {pawl}.command WHERE " + p.from + " AND (" + columns + ")" + from)
	p.place(s, &f.After).add(") ORDER BY "+columns+" FETCH FIRST %s ROWS WITH TIES) AS x) AS looked WHERE hit OR n = %s",
		scanned, scanned)
	s.add(" ORDER BY "+p.order("grp", "sub", "at")+", scope, key LIMIT %s) AS e", limit+2)
	s.WriteString(" LEFT JOIN LATERAL (SELECT * FROM {pawl}.command c WHERE e.hit AND c.tenant = $1 AND c.scope = e.scope AND c.key = e.key " +
		"LIMIT 1) c ON true" + audit.Position("$1") + BusinessKey("$1", "c.instance"))
	s.WriteString(" ORDER BY " + p.order("e.grp", "e.sub", "e.at") + ", e.scope, e.key")
	return s
}

// order lists the ordering columns of the part.
func (p part) order(group, subgroup, at string) string {
	list := []string{at}
	if p.group != "" {
		list = []string{group, subgroup, at}
	}
	if p.byInstance {
		instance := "instance"
		if table, _, is := strings.Cut(at, "."); is {
			instance = table + ".instance"
		}
		list = append(list, instance)
	}
	return strings.Join(list, ", ")
}

func (p part) place(s *query, at *inspect.CommandPlace) *query {
	if p.group != "" {
		s.add("%s, %s, ", at.Group, at.Subgroup)
	}
	if s.add("%s", at.At); p.byInstance {
		s.add(", %s", at.Instance)
	}
	return s
}
