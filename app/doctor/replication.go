package doctor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

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
		drop := dof("bring its receiver back, or give it up: SELECT pg_drop_replication_slot('%s')", name)
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
	return fmt.Sprintf("none of %s keeps much", several(slots, "replication slot")), onlyFound(found), err
}

// onlyFound leaves out the rows that are well.
func onlyFound(all []Finding) (found []Finding) {
	for _, f := range all {
		if f.Severity != "" {
			found = append(found, f)
		}
	}
	return found
}

const standbysSQL = `SELECT count(*), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum') AND state = 'streaming')
	FROM pg_stat_replication`

func lookAtStandbys(ctx context.Context, x *exam) (string, []Finding, error) {
	names, err := x.value(ctx, "synchronous_standby_names")
	if err != nil || names == "" {
		return "no commit waits for a standby", nil, err
	}
	c, err := one[struct{ All, Synchronous int }](ctx, x, standbysSQL)
	switch {
	case err != nil:
		return "", nil, err
	case !x.facts.sees:
		return "", []Finding{x.blind("how the standbys stand")}, nil
	case c.Synchronous == 0:
		return "", []Finding{problem("", "bring a standby of synchronous_standby_names back, or take it out and SELECT pg_reload_conf()",
			"commits wait for a standby of %q, and none of the %d that are connected is one: no command can end", names, c.All)}, nil
	}
	return fmt.Sprintf("commits wait for standbys of %q, of which %d are there", names, c.Synchronous), nil, nil
}

const (
	walSQL = `SELECT count(*), coalesce(sum(size), 0)::int8 FROM pg_ls_waldir()`

	archiverSQL = `SELECT coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false), failed_count::int8,
		coalesce(last_failed_wal, '')
FROM pg_stat_archiver`
)

// lookAtWAL tells how much write-ahead log the server keeps, and whether it can get rid of it.
func lookAtWAL(ctx context.Context, x *exam) (string, []Finding, error) {
	archiver, err := one[struct {
		Fails bool
		Times int64
		File  string
	}](ctx, x, archiverSQL)
	if err != nil {
		return "", nil, err
	}
	var found []Finding
	if archiver.Fails {
		found = append(found, problem("archiver", "see the server's log for what archive_command says; all of the log is kept until it succeeds",
			"the write-ahead log cannot be archived: %s failed, the last one with %s", several(archiver.Times, "attempt"), archiver.File))
	}
	wal, err := one[struct{ Files, Bytes int64 }](ctx, x, walSQL)
	if err != nil {
		return "", found, err
	}
	most, err := x.value(ctx, "max_wal_size")
	if size, ok := sizeOf(most); ok && wal.Bytes > x.limits.walTimes*size {
		found = append(found, warning("", "find what keeps it: a replication slot, wal_keep_size, an archiver that is behind",
			"%s of write-ahead log is kept, and max_wal_size is %s", bytes(wal.Bytes), most))
	}
	return fmt.Sprintf("%s of write-ahead log is kept", bytes(wal.Bytes)), found, err
}
