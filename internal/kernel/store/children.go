package store

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/transitions"
)

// maxVersions is how many of the parent's transitions one page of its children looks at: each is a probe of a key.
const maxVersions = 1000

// Children reads a page of the instances that the parent has started. The filter is complete.
//
// No index has all children, because every transition would pay for it. The id of a child without a business key follows from its parent's
// id, the version that started it, and its number in that version; one with a business key is in an index by the same place. So one probe
// shows whether a version has a child, and another whether it has a next one.
func (q *Reader) Children(ctx context.Context, parent *transitions.Instance, f *inspect.ChildFilter) (page inspect.ChildPage, err error) {
	last := min(parent.Version, max(f.After.Version, 1)+maxVersions-1)
	err = q.listing(ctx, "children", func(l *lister) error {
		s := childrenSQL(f, last)
		found, err := ask(ctx, l.tx, l.in(s.String()), s.args...)
		if err != nil {
			return err
		}
		page, err = readChildren(found, f)
		return err
	})
	if err != nil {
		return inspect.ChildPage{}, err
	}
	if !page.More && last < parent.Version {
		page.More, page.Next = true, inspect.ChildPlace{Version: last, Ordinal: math.MaxInt32}
	}
	return page, nil
}

// isStuck reports whether a command of the instance i waits for an operator.
const isStuck = "((SELECT true FROM {pawl}.command AS c WHERE c.tenant = $1 AND c.instance = i.id AND c.stuck IS NOT NULL LIMIT 1)" +
	" IS NOT NULL)"

// childrenSQL reads the selected children of the parent's versions up to last, numbered, and the last child that the page examines. All
// joins are read row by row, in the order of the versions, and only as far as the page goes.
func childrenSQL(f *inspect.ChildFilter, last int64) *query {
	child := func(ordinal string) string {
		return "SELECT id FROM ((" + newest("i.id", "$1", "{pawl}.instance_id($2::text || '/' || v.version, ("+ordinal+")::text, $1)") +
			") UNION ALL (SELECT k.id FROM {pawl}.instance AS k WHERE k.tenant = $1 AND k.links -> 'parent' ->> 'instance' = $2" +
			" AND strpos(k.links::text, '\\u') = 0" + // as the index has it
			" AND k.links -> 'parent' ->> 'place' = v.version || '-' || (" + ordinal + ") LIMIT 1)) AS either LIMIT 1"
	}
	kind := func(s *query) {
		s.ofKind(&inspect.CountFilter{States: f.States, Open: f.Open})
		if f.Stuck != nil {
			s.add(" AND "+isStuck+" = %s", *f.Stuck)
		}
	}
	s := &query{args: []any{f.Tenant, f.Parent.String()}}
	s.WriteString("SELECT " + instanceSelect + ", n, (true")
	kind(s)
	s.WriteString(") AS hit, " + isStuck + " AS stuck, e.started, e.ordinal FROM " +
		"(SELECT v.version AS started, c.ordinal, c.id, row_number() OVER () AS n FROM ")
	s.add("generate_series(%s::bigint, %s::bigint) AS v(version) CROSS JOIN LATERAL (", max(f.After.Version, 1), last)
	s.WriteString("WITH RECURSIVE child AS (SELECT 0 AS ordinal, id FROM (" + child("0") + ") AS first UNION ALL " +
		"SELECT child.ordinal + 1, following.id FROM child CROSS JOIN LATERAL (" + child("child.ordinal + 1") + ") AS following) ")
	s.add("SELECT * FROM child) AS c WHERE (v.version, c.ordinal) > (%s::bigint, %s::int)", f.After.Version, f.After.Ordinal)
	s.add(" LIMIT %s) AS e CROSS JOIN LATERAL ("+newest("*", "$1", "e.id")+") AS i WHERE n = %s OR (true", maxScanned, maxScanned)
	kind(s)
	return s.add(") LIMIT %s", f.Limit+1)
}

// readChildren reads what childrenSQL asks for.
func readChildren(found pgx.Rows, f *inspect.ChildFilter) (page inspect.ChildPage, err error) {
	defer found.Close()
	for !page.More && found.Next() {
		row := rows.Read(found.RawValues())
		child, err := mustInstance(row, f.Tenant)
		n, hit, stuck, place := row.Int8(), row.Bool(), row.Bool(), inspect.ChildPlace{Version: row.Int8(), Ordinal: row.Int4()}
		if err = cmp.Or(err, row.Err()); err != nil {
			return page, err
		}
		if hit && len(page.Children) == f.Limit {
			page.More = true
			break
		}
		if hit {
			page.Children = append(page.Children, inspect.Child{Instance: child, Stuck: stuck})
		}
		page.Next, page.More = place, n == maxScanned
	}
	if found.Close(); !page.More {
		page.Next = inspect.ChildPlace{}
	}
	return page, found.Err()
}

// BusinessKeyOf reads the business key of an instance, "" where it has none, or is not there.
func (q *Reader) BusinessKeyOf(ctx context.Context, tenant string, id uuid.UUID) (key string, err error) {
	err = q.pool.QueryRow(ctx, q.in(newest("coalesce(i.business_key, '')", "$1", "$2")), plannedNow, tenant, id).Scan(&key)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", ReadError("business key", err)
	}
	return key, nil
}
