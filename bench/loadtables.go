package bench

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// loadedTables are those with a row for each command or instance.
var loadedTables = []string{"instance", "command", "audit", "outbox"}

// indexesSQL finds the indexes of some tables and of their partitions: what drops
// each, and what builds it again. Those of constraints come and go with them, and
// those of partitions with the whole table's, if they are part of one.
//
// Primary keys that begin with an instance or a scope are entered in no order, so
// that their pages would be about 70 % full if they had grown.
const indexesSQL = `
WITH root AS (SELECT oid FROM pg_class WHERE relnamespace = $1::regnamespace AND relname = ANY ($2)),
	loaded AS (SELECT oid FROM root UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent IN (SELECT oid FROM root))
SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname),
	CASE WHEN conname IN ('instance_pkey', 'command_pkey', 'audit_pkey')
		THEN format('ALTER TABLE %1$s ADD CONSTRAINT %2$I %3$s WITH (fillfactor = 70); ALTER INDEX %4$s.%2$I RESET (fillfactor)',
			conrelid::regclass, conname, pg_get_constraintdef(oid), connamespace::regnamespace)
		ELSE format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) END
FROM pg_constraint WHERE contype IN ('p', 'u', 'x') AND conparentid = 0 AND conrelid IN (SELECT oid FROM loaded)
UNION ALL
SELECT format('DROP INDEX %s', indexrelid::regclass), replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ')
FROM pg_index WHERE indrelid IN (SELECT oid FROM loaded) AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
	AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = indexrelid)`

// dropIndexes drops the indexes of the loaded tables, and remembers how to build
// them.
func (l *loader) dropIndexes(ctx context.Context) error {
	found, err := l.db.admin.Query(ctx, indexesSQL, l.config.Schema, loadedTables)
	if err != nil {
		return err
	}
	type index struct{ Drop, Build string }
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[index])
	if err != nil {
		return err
	}
	for _, i := range list {
		if _, err := l.db.admin.Exec(ctx, i.Drop); err != nil {
			return err
		}
		l.rebuild = append(l.rebuild, i.Build)
	}
	return nil
}

// index builds the indexes. Sorting takes what memory an operator would give it.
func (l *loader) index(ctx context.Context) error {
	if _, err := l.db.admin.Exec(ctx, "SET maintenance_work_mem = '1GB'"); err != nil {
		return err
	}
	for _, sql := range l.rebuild {
		if _, err := l.db.admin.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	return nil
}

// filledSQL finds the loaded tables and partitions that have rows.
const filledSQL = `
SELECT c.oid::regclass::text FROM pg_class AS c
WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r' AND pg_relation_size(c.oid) > 0
	AND (c.relname = ANY ($2) OR EXISTS (SELECT FROM pg_inherits AS i JOIN pg_class AS p ON p.oid = i.inhparent
		WHERE i.inhrelid = c.oid AND p.relname = ANY ($2)))`

// vacuum does what autovacuum would have done by the time that so much is there.
// It leaves the partitions alone that are yet to be filled, as that does: the
// planner takes a table that was found empty for one that stays so.
func (l *loader) vacuum(ctx context.Context) error {
	found, err := l.db.admin.Query(ctx, filledSQL, l.config.Schema, append([]string{"log"}, loadedTables...))
	if err != nil {
		return err
	}
	tables, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, table := range tables {
		if _, err := l.db.admin.Exec(ctx, "VACUUM (ANALYZE) "+table); err != nil {
			return err
		}
	}
	return nil
}

// tableSize is how much of the disk a table takes, in bytes, partitions included.
type tableSize struct {
	Table               string
	Rows, Heap, Indexes float64
}

const sizesSQL = `
SELECT t.name, sum(greatest(c.reltuples, 0)), sum(pg_table_size(p.oid)), sum(pg_indexes_size(p.oid))
FROM unnest($2::text[]) WITH ORDINALITY AS t(name, ord)
JOIN pg_class AS root ON root.relnamespace = $1::regnamespace AND root.relname = t.name
CROSS JOIN LATERAL (SELECT root.oid UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = root.oid) AS p
JOIN pg_class AS c ON c.oid = p.oid AND c.relkind = 'r'
GROUP BY t.name, t.ord ORDER BY t.ord`

func (d *database) sizes(ctx context.Context) ([]tableSize, error) {
	found, err := d.admin.Query(ctx, sizesSQL, d.schema, loadedTables)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowToStructByPos[tableSize])
}
