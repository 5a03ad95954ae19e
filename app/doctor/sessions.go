package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// connectionsSQL counts the connections, and their limits: of the server, of this database, and of this role.
const connectionsSQL = `SELECT count(*), count(*) FILTER (WHERE a.datname = current_database()),
	count(*) FILTER (WHERE a.usename = current_user),
	(SELECT datconnlimit FROM pg_database WHERE datname = current_database()), (SELECT rolconnlimit
		FROM pg_roles WHERE rolname = current_user),
	(SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
FROM pg_stat_activity AS a WHERE a.datid IS NOT NULL AND coalesce(a.backend_type, 'client backend') = 'client backend'`

func lookAtConnections(ctx context.Context, x *exam) (string, []Finding, error) {
	c, err := one[struct {
		All, Here, Own      int
		HereLimit, OwnLimit int // -1: none
		Super               bool
	}](ctx, x, connectionsSQL)
	if err != nil {
		return "", nil, err
	}
	most, err := x.places(ctx, c.Super)
	if err != nil {
		return "", nil, err
	}
	var found []Finding
	least := most
	judge := func(of, limit string, used, most int) {
		if most < 0 {
			return
		}
		least = min(least, most)
		share := float64(used) / float64(max(most, 1))
		f := warning(of, dof("raise %s, or reduce the connections of programs, such as with a pooler", limit),
			"%d of the %d connections of %s are used", used, most, of)
		switch {
		case share >= x.limits.full:
			f.Severity = Problem
		case share < x.limits.used:
			return
		}
		found = append(found, f)
	}
	judge(everybody, "max_connections", c.All, most)
	judge("database "+x.facts.database, "its CONNECTION LIMIT", c.Here, c.HereLimit)
	judge("role "+x.facts.role, "its CONNECTION LIMIT", c.Own, c.OwnLimit)
	if x.conns > least {
		found = append(found, warning("pool", dof("set pool_max_conns in the connection string to less than %d, divided by the number of nodes", least),
			"the pool of one node may have %s in addition to those of its pipeline, and the limit is %d", several(x.conns, "connection"), least))
	}
	return fmt.Sprintf("%d of %s in use, and the pool of a node may have %d", c.All, several(most, "connection"), x.conns), found, nil
}

// places returns the number of connections that a role can use.
func (x *exam) places(ctx context.Context, super bool) (int, error) {
	number := func(name string) (n int, err error) {
		text, err := x.value(ctx, name)
		if err == nil && text != "" {
			n, err = strconv.Atoi(text)
		}
		return n, err
	}
	most, err := number("max_connections")
	for _, kept := range []string{"superuser_reserved_connections", "reserved_connections"} {
		if err != nil || super {
			break
		}
		var n int
		n, err = number(kept)
		most -= n
	}
	return most, err
}

// transactionsSQL lists long transactions of clients, the longest first.
const transactionsSQL = `
SELECT a.pid, coalesce(a.usename, ''), a.application_name, coalesce(a.state, ''),
	extract(epoch FROM clock_timestamp() - a.xact_start)::float8, coalesce(age(a.backend_xmin), 0)::int8
FROM pg_stat_activity AS a WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.backend_type = 'client backend'
	AND a.xact_start < clock_timestamp() - $1::float8 * interval '1 second'
ORDER BY a.xact_start LIMIT 10`

func lookAtTransactions(ctx context.Context, x *exam) (string, []Finding, error) {
	found, err := read(ctx, x, func(row pgx.CollectableRow) (Finding, error) {
		var pid int
		var role, program, state string
		var age float64
		var behind int64
		err := row.Scan(&pid, &role, &program, &state, &age, &behind)
		open := time.Duration(age * float64(time.Second))
		f := warning(fmt.Sprintf("pid %d", pid), dof("find its owner; SELECT pg_terminate_backend(%d) ends it", pid),
			"a transaction of %s (%s) is open for %s, %s: it keeps vacuum from removing rows (%s), and delays sinks",
			role, orUnnamed(program), span(open), state, several(behind, "transaction"))
		if open >= x.limits.longest {
			f.Severity = Problem
		}
		return f, err
	}, transactionsSQL, x.limits.transaction.Seconds())
	if err == nil && !x.facts.sees {
		found = append(found, x.blind("how long the transactions are open"))
	}
	return fmt.Sprintf("no transaction is open for longer than %s", span(x.limits.transaction)), found, err
}

func orUnnamed(program string) string {
	if program == "" {
		return "a program without a name"
	}
	return program
}

const preparedSQL = `SELECT gid, owner::text, extract(epoch FROM clock_timestamp() - prepared)::float8, age(transaction)::int8
FROM pg_prepared_xacts WHERE database = current_database() AND prepared < clock_timestamp() - $1::float8 * interval '1 second'
ORDER BY prepared LIMIT 10`

func lookAtPrepared(ctx context.Context, x *exam) (string, []Finding, error) {
	found, err := read(ctx, x, func(row pgx.CollectableRow) (Finding, error) {
		var gid, owner string
		var age float64
		var behind int64
		err := row.Scan(&gid, &owner, &age, &behind)
		name := "'" + strings.ReplaceAll(gid, "'", "''") + "'"
		return problem(gid, dof("COMMIT PREPARED %s or ROLLBACK PREPARED %[1]s, as its transaction manager says", name),
			"a prepared transaction of %s waits for %s: it holds locks, and keeps vacuum from removing rows (%s)",
			owner, span(time.Duration(age*float64(time.Second))), several(behind, "transaction")), err
	}, preparedSQL, x.limits.transaction.Seconds())
	return "no prepared transaction waits", found, err
}

const lockWaitsSQL = `SELECT a.pid, coalesce(a.usename, ''), a.application_name,
	extract(epoch FROM clock_timestamp() - a.query_start)::float8, array_to_string(pg_blocking_pids(a.pid), ', ')
FROM pg_stat_activity AS a WHERE a.datname = current_database() AND a.wait_event_type = 'Lock'
	AND a.query_start < clock_timestamp() - $1::float8 * interval '1 second' ORDER BY a.query_start LIMIT 10`

func lookAtLockWaits(ctx context.Context, x *exam) (string, []Finding, error) {
	found, err := read(ctx, x, func(row pgx.CollectableRow) (Finding, error) {
		var pid int
		var role, program, holders string
		var age float64
		err := row.Scan(&pid, &role, &program, &age, &holders)
		return warning(fmt.Sprintf("pid %d", pid), dof("see what the session %s does, and end it if it is not needed", holders),
			"a statement of %s (%s) waits for %s for a lock that %s holds", role, orUnnamed(program),
			span(time.Duration(age*float64(time.Second))), holders), err
	}, lockWaitsSQL, x.limits.lockWait.Seconds())
	if err == nil && !x.facts.sees {
		found = append(found, x.blind("what the sessions wait for"))
	}
	return fmt.Sprintf("no statement waits for a lock for longer than %s", span(x.limits.lockWait)), found, err
}

const xidsSQL = `SELECT age(datfrozenxid)::int8 FROM pg_database WHERE datname = current_database()`

func lookAtTransactionIDs(ctx context.Context, x *exam) (string, []Finding, error) {
	c, err := one[struct{ Age int64 }](ctx, x, xidsSQL)
	if err != nil || c.Age < x.limits.xids {
		return fmt.Sprintf("%d million transactions since the oldest one that is not frozen, of 2000", c.Age/1_000_000), nil, err
	}
	f := warning("", "remove what holds vacuum back (see transactions, prepared-transactions, replication-slots), then VACUUM (FREEZE)",
		"%d million transactions since the oldest one that is not frozen; at 2000 the server takes no more", c.Age/1_000_000)
	if c.Age >= x.limits.xidsLeft {
		f.Severity = Problem
	}
	return "", []Finding{f}, nil
}

const slotsSQL = `SELECT slot_name::text, active, coalesce(wal_status, ''), greatest(age(xmin), age(catalog_xmin), 0)::int8,
	coalesce(CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) END, 0)::int8, restart_lsn IS NOT NULL
FROM pg_replication_slots WHERE NOT temporary ORDER BY slot_name`

func lookAtSlots(ctx context.Context, x *exam) (string, []Finding, error) {
	slots := 0
	found, err := read(ctx, x, func(row pgx.CollectableRow) (Finding, error) {
		var name, status string
		var active, keeps bool
		var behind, wal int64
		err := row.Scan(&name, &active, &status, &behind, &wal, &keeps)
		slots++
		drop := dof("restart its receiver, or drop it: SELECT pg_drop_replication_slot('%s')", name)
		what := fmt.Sprintf("%s of write-ahead log, and rows of %s from vacuum", bytes(wal), several(behind, "transaction"))
		switch {
		case status == "lost":
			return warning(name, drop, "the server has removed the log that it needs"), err
		case keeps && wal >= x.limits.slotWAL:
			return problem(name, drop, "it keeps %s", what), err
		case !active && (keeps || behind > 0):
			return warning(name, drop, "it has no receiver, and keeps %s", what), err
		}
		return Finding{}, err
	}, slotsSQL)
	return fmt.Sprintf("%s, within the limits", several(slots, "replication slot")), onlyFound(found), err
}

// onlyFound returns the findings without zero values.
func onlyFound(all []Finding) (found []Finding) {
	for _, f := range all {
		if f.Severity != "" {
			found = append(found, f)
		}
	}
	return found
}
