package bench

import (
	"context"
	"fmt"
)

// head is how far the log of the tenant is that all scenarios write to.
func (d *database) head(ctx context.Context) (n int64, err error) {
	err = d.admin.QueryRow(ctx, d.in("SELECT head FROM pawl.log WHERE tenant = $1"), tenant).Scan(&n)
	return n, err
}

// stored is what the tables hold.
type stored struct {
	commands, versions, audit, events, positions, head int64
}

const storedSQL = `SELECT (SELECT count(*) FROM pawl.command WHERE status = 'succeeded'),
	(SELECT coalesce(sum(version), 0)::bigint FROM pawl.instance),
	(SELECT count(*) FROM pawl.audit), (SELECT count(*) FROM pawl.outbox),
	(SELECT count(*) FROM (SELECT DISTINCT a.position FROM pawl.audit a JOIN pawl.outbox o
		ON o.tenant = a.tenant AND o.position = a.position AND o.instance = a.instance AND o.version = a.version) p),
	(SELECT coalesce(sum(head), 0)::bigint FROM pawl.log)`

// verify checks that the tables hold so many commands, and transitions with each
// its version, its audit row, its event and a position of its own, and nothing
// else; and that the log's head says so too, where there is one.
func (d *database) verify(ctx context.Context, commands, n int64, headed bool) error {
	var s stored
	if err := d.admin.QueryRow(ctx, d.in(storedSQL)).Scan(&s.commands, &s.versions, &s.audit, &s.events, &s.positions, &s.head); err != nil {
		return fmt.Errorf("count the rows: %w", err)
	}
	want := stored{commands, n, n, n, n, n}
	if !headed {
		want.head = s.head
	}
	if s != want {
		return fmt.Errorf("the tables do not hold what was claimed to be committed: %d commands, %d transitions, but found %+v", commands, n, s)
	}
	return nil
}

// Every position after a base, with what belongs to it.
const storedSinceSQL = `SELECT count(*), count(DISTINCT o.position), count(a.hash), count(c.key), coalesce(max(o.position), 0)
FROM pawl.outbox AS o
LEFT JOIN LATERAL (SELECT * FROM pawl.audit AS a WHERE a.tenant = o.tenant AND a.instance = o.instance AND a.version = o.version
	AND a.position = o.position LIMIT 1) AS a ON true
LEFT JOIN LATERAL (SELECT * FROM pawl.command AS c WHERE c.tenant = a.tenant AND c.scope = a.scope AND c.key = a.key
	AND c.status = 'succeeded' LIMIT 1) AS c ON true
WHERE o.tenant = $1 AND o.position > $2`

// verifySince checks that n transitions have been committed since the log was at
// base, each with its event, audit row and command. To count all rows would take
// too long.
func (d *database) verifySince(ctx context.Context, base, n int64) error {
	var events, positions, entries, commands, last int64
	err := d.admin.QueryRow(ctx, d.in(storedSinceSQL), tenant, base).Scan(&events, &positions, &entries, &commands, &last)
	if err != nil {
		return fmt.Errorf("count the rows: %w", err)
	}
	head, err := d.head(ctx)
	if err != nil {
		return err
	}
	if events != n || positions != n || entries != n || commands != n || last != base+n || head != base+n {
		return fmt.Errorf("the tables do not hold what was claimed to be committed: %d transitions since %d, but found %d events, %d positions, "+
			"%d audit rows, %d commands, the last at %d and the head at %d", n, base, events, positions, entries, commands, last, head)
	}
	return nil
}
