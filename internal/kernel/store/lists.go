package store

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// maxScanned is how many entries of an index one page looks at.
const maxScanned = 10_000

// order is an order of instances: by a time, then by id.
type order struct {
	column, direction, beyond string
}

var (
	byUpdate   = &order{"updated_at", " DESC", "<"} // of the index instance_list, within a kind
	byCreation = &order{"created_at", "", ">"}      // of the index instance_created
)

// of returns the clause that orders rows by a time and an id.
func (o *order) of(time, id string) string {
	return " ORDER BY " + time + o.direction + ", " + id + o.direction
}

// orderOf returns the order that a filter asks for.
func orderOf(f *inspect.Filter) *order {
	if f.Order == inspect.ByUpdate {
		return byUpdate
	}
	return byCreation
}

// source selects the entries of a page: the instances that meet one of several conditions. None meets two.
type source struct {
	conditions []func(*query)
	// ranges is the order of the index of which each condition is a range, nil for other conditions. The planner merges ranges and reads no
	// more than a page needs, but only if each is a query with its own order.
	ranges *order
}

func entries(condition func(*query)) *source { return &source{conditions: []func(*query){condition}} }

// beginLists begins a transaction for lists and counts, with one snapshot. With stale statistics of a grown table the planner might sort
// all rows of a tenant and start JIT; both are disabled. Only the index of attributes is read by a bitmap.
const (
	beginLists = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL enable_seqscan = off;
	SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off; SET LOCAL enable_bitmapscan = off; SET LOCAL jit = off`
	bitmaps   = "SET LOCAL enable_bitmapscan = on"
	noBitmaps = "SET LOCAL enable_bitmapscan = off"
)

// maxListedKinds bounds the kinds listed together, because each is planned as a part of the statement.
const maxListedKinds = 200

// lister reads lists and counts in one transaction.
type lister struct {
	*Reader
	tx pgx.Tx
}

// listing calls do in a transaction that reads what.
func (q *Reader) listing(ctx context.Context, what string, do func(l *lister) error) error {
	err := pgx.BeginTxFunc(ctx, q.pool, pgx.TxOptions{BeginQuery: beginLists}, func(tx pgx.Tx) error {
		return do(&lister{q, tx})
	})
	if err != nil {
		return ReadError(what, err)
	}
	return nil
}

func (l *lister) query(ctx context.Context, s *query) (pgx.Rows, error) {
	return l.tx.Query(ctx, l.in(s.String()), slices.Concat([]any{plannedNow}, s.args)...)
}

// Instances reads a page. The filter is complete.
func (q *Reader) Instances(ctx context.Context, f *inspect.Filter) (page inspect.Page, err error) {
	err = q.listing(ctx, "instances", func(l *lister) (err error) {
		page, err = l.instances(ctx, f)
		return err
	})
	return page, err
}

// instances reads a page: entries of an index in the order of the list, as many as it may examine, and the selected instances.
func (l *lister) instances(ctx context.Context, f *inspect.Filter) (page inspect.Page, err error) {
	attributes, err := marshalAttributes(f.Attributes)
	if err != nil {
		return page, err
	}
	from, err := l.sourceOf(ctx, f, attributes)
	if err != nil || from == nil {
		return page, err
	}
	part, size := *f, 0 // of the page: rows whose size is not known are read a few at a time
	for {
		part.Limit = transitions.NextRows(size, len(page.Instances), f.Limit)
		s := pageOf(from, &part, attributes)
		found, err := ask(ctx, l.tx, l.in(s.String()), s.args...)
		if err != nil {
			return page, err
		}
		next, err := readPage(found, &part)
		if err != nil {
			return page, err
		}
		looked := len(next.Instances) < part.Limit // at as many as a page may look at
		size += sizeOf(next.Instances)
		next.Instances = append(page.Instances, next.Instances...)
		page, part.After = next, next.Next
		if looked || !page.More || len(page.Instances) == f.Limit || size >= transitions.PageBytes {
			return page, nil
		}
	}
}

// sizeOf is how many bytes of data instances have.
func sizeOf(list []transitions.Instance) (size int) {
	for i := range list {
		size += len(list[i].Data)
	}
	return size
}

// marshalAttributes returns attributes as the JSON that a row with them contains.
func marshalAttributes(attributes map[string]string) (string, error) {
	text, err := json.Marshal(attributes, jsontext.AllowInvalidUTF8(true))
	return string(text), err
}

// pageOf returns the statement that reads a page: numbered entries in the order of the list, and the instances of the selected ones and of
// the last one examined.
func pageOf(from *source, f *inspect.Filter, attributes string) *query {
	order := orderOf(f).of("at", "entry")
	s := &query{}
	s.WriteString("SELECT " + instanceSelect + ", n, coalesce(")
	selected(s, f, attributes)
	s.WriteString(", false) AS hit, at, entry FROM (SELECT at, entry, row_number() OVER (" + order + ") AS n FROM (")
	from.write(s, f, true)
	s.add(") AS entries"+order+" LIMIT %s) AS e", maxScanned)
	s.add(" CROSS JOIN LATERAL ("+newest("*", "%s", "e.entry")+") AS i", f.Tenant)
	s.add(" WHERE n = %s OR ", maxScanned)
	selected(s, f, attributes)
	return s.add(order+" LIMIT %s", f.Limit+1)
}

func readPage(found pgx.Rows, f *inspect.Filter) (page inspect.Page, err error) {
	defer found.Close()
	for size := 0; !page.More && found.Next(); {
		row := rows.Read(found.RawValues())
		inst, err := mustInstance(row, f.Tenant)
		n, hit, place := row.Int8(), row.Bool(), inspect.Place{At: row.Time(), ID: row.UUID()}
		if err = cmp.Or(err, row.Err()); err != nil {
			return page, err
		}
		if hit && len(page.Instances) == f.Limit {
			page.More = true
			break
		}
		if hit {
			page.Instances = append(page.Instances, inst)
			size += len(inst.Data)
		}
		page.Next, page.More = place, n == maxScanned || size >= transitions.PageBytes
	}
	if found.Close(); !page.More {
		page.Next = inspect.Place{}
	}
	return page, found.Err()
}

// kindsOf is what a filter asks of the kind of an instance.
func kindsOf(f *inspect.Filter) *inspect.CountFilter {
	return &inspect.CountFilter{Tenant: f.Tenant, Workflow: f.Workflow, Definition: f.Definition, States: f.States, Open: f.Open}
}

// selected writes the conditions of a filter on an instance.
func selected(s *query, f *inspect.Filter, attributes string) {
	s.WriteString("(true")
	s.ofKind(kindsOf(f))
	s.WriteString(" AND ")
	created(s, f)
	updated(s, f)
	if len(f.Attributes) > 0 {
		s.add(" AND attributes @> %s::jsonb", attributes)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Ranges)) {
		r := f.Ranges[name]
		if r.From != "" {
			s.add(` AND (attributes ->> %s::text) COLLATE "C" >= %s::text`, name, r.From)
		}
		if r.Before != "" {
			s.add(` AND (attributes ->> %s::text) COLLATE "C" < %s::text`, name, r.Before)
		}
		if r.Prefix != "" {
			s.add(" AND starts_with(attributes ->> %s::text, %s::text)", name, r.Prefix)
		}
	}
	s.WriteString(")")
}

// created writes the conditions on the time of creation, at least one, so that the planner uses instance_created.
func created(s *query, f *inspect.Filter) {
	if f.CreatedAfter.IsZero() {
		s.WriteString("created_at >= '-infinity'")
	} else {
		s.add("created_at >= %s", f.CreatedAfter)
	}
	if !f.CreatedBefore.IsZero() {
		s.add(" AND created_at < %s", f.CreatedBefore)
	}
}

func updated(s *query, f *inspect.Filter) {
	if !f.UpdatedAfter.IsZero() {
		s.add(" AND updated_at >= %s", f.UpdatedAfter)
	}
	if !f.UpdatedBefore.IsZero() {
		s.add(" AND updated_at < %s", f.UpdatedBefore)
	}
}

// sourceOf decides which index a page is read from, nil for nothing to read.
//
// The order of updates is that of instance_list within each kind, the order of creation that of instance_created, in which a page may
// examine many unselected instances. If an index shows that few instances match, all are read and sorted.
func (l *lister) sourceOf(ctx context.Context, f *inspect.Filter, attributes string) (*source, error) {
	if f.BusinessKey != "" {
		return entries(func(s *query) {
			s.add("tenant = %s AND id = %s", f.Tenant, transitions.InstanceID(f.Tenant, f.Workflow, f.BusinessKey))
		}), nil
	}
	if len(f.Attributes) > 0 {
		if few, err := l.fewWithAttributes(ctx, f, attributes); few != nil || err != nil {
			return few, err
		}
	}
	whole := entries(func(s *query) {
		s.add("tenant = %s AND ", f.Tenant)
		created(s, f)
	})
	whole.ranges = byCreation
	if f.Order == inspect.ByUpdate && (!f.CreatedAfter.IsZero() || !f.CreatedBefore.IsZero()) {
		if few, err := l.few(ctx, whole, f); few || err != nil {
			return whole, err
		}
	}
	ofKind := f.Workflow != "" || f.Definition != 0 || len(f.States) > 0 || f.Open != nil
	inTime := !f.UpdatedAfter.IsZero() || !f.UpdatedBefore.IsZero()
	if f.Order == inspect.ByCreation && !ofKind && !inTime {
		return whole, nil
	}
	kinds, _, err := l.kinds(ctx, kindsOf(f), everyKind)
	if err != nil || len(kinds) == 0 {
		return nil, err
	}
	listed := ofKinds(kinds, f)
	switch many := len(kinds) > maxListedKinds; {
	case many && f.Order == inspect.ByUpdate:
		return nil, workflow.Errorf(workflow.InvalidRequest, "the list is of more than %d kinds of instances (workflow, definition, state): "+
			"name the workflow, its definition or a state", maxListedKinds)
	case many:
		return whole, nil
	case f.Order == inspect.ByUpdate:
		return listed, nil
	}
	if few, err := l.few(ctx, listed, f); few || err != nil {
		return listed, err
	}
	return whole, nil
}

// fewWithAttributes returns the instances with the attributes if they are few, otherwise nil. The index of attributes is read as a whole.
func (l *lister) fewWithAttributes(ctx context.Context, f *inspect.Filter, attributes string) (*source, error) {
	guess, err := l.expected(ctx, l.tx, "SELECT FROM {pawl}.instance WHERE attributes @> $1::jsonb", attributes)
	if err != nil || guess > 10*maxScanned {
		return nil, err
	}
	if _, err := l.tx.Exec(ctx, bitmaps); err != nil {
		return nil, err
	}
	have := entries(func(s *query) { withAttributes(s, f.Tenant, attributes) })
	if few, err := l.few(ctx, have, f); few || err != nil {
		return have, err
	}
	_, err = l.tx.Exec(ctx, noBitmaps)
	return nil, err
}

// withAttributes writes the condition for the index of attributes, of one tenant or, with "", of all. The expression on the tenant keeps
// the planner from the primary key.
func withAttributes(s *query, tenant, attributes string) {
	s.add("attributes @> %s::jsonb", attributes)
	if tenant != "" {
		s.add(" AND tenant || '' = %s", tenant)
	}
}

// ofKinds are the instances of some kinds, as the index of lists has them.
func ofKinds(kinds []Kind, f *inspect.Filter) *source {
	listed := &source{ranges: byUpdate}
	for _, k := range kinds {
		listed.conditions = append(listed.conditions, func(s *query) {
			s.add("tenant = %s AND workflow = %s AND definition = %s AND state = %s AND open = %s",
				k.Tenant, k.Workflow, k.Definition, string(k.State), k.Open)
			updated(s, f)
		})
	}
	return listed
}

// few reports whether a source has no more entries than a page may look at.
func (l *lister) few(ctx context.Context, from *source, f *inspect.Filter) (few bool, err error) {
	var s query
	s.WriteString("SELECT count(*) <= ")
	s.add("%s FROM (SELECT FROM (", maxScanned)
	from.write(&s, f, false)
	s.add(") AS entries LIMIT %s) AS few", maxScanned+1)
	found, err := l.query(ctx, &s)
	if err != nil {
		return false, err
	}
	return pgx.CollectExactlyOneRow(found, pgx.RowTo[bool])
}

// write writes the entries: all of them, or those from the place on where the page begins.
func (from *source) write(s *query, f *inspect.Filter, page bool) {
	order := orderOf(f)
	for i, condition := range from.conditions {
		if i > 0 {
			s.WriteString(" UNION ALL ")
		}
		s.WriteString("(SELECT " + order.column + " AS at, id AS entry FROM {pawl}.instance WHERE ")
		condition(s)
		if page && f.After.ID != uuid.Nil {
			s.add(" AND ("+order.column+", id) "+order.beyond+" (%s, %s)", f.After.At, f.After.ID)
		}
		if from.ranges != nil {
			s.add(from.ranges.of(from.ranges.column, "id")+" LIMIT %s", maxScanned+1)
		}
		s.WriteString(")")
	}
}
