package upgrades

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/schema"
)

// dataBegins stands between the tables and what is in them.
const dataBegins = "\n-- What is in the tables.\n"

// dump is a database as a script: its tables as this build's migrations make them, and what is in them at one moment.
func dump(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(schema.Plan(schema.Default, 0) + dataBegins)
	err := pgx.BeginTxFunc(t.Context(), pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := each(t.Context(), tx, &b, `SELECT format('SELECT pawl.make_partition(%L, %L);', 'outbox', day) FROM (
			SELECT DISTINCT date_trunc('day', at AT TIME ZONE 'UTC')::text || ' UTC' FROM pawl.outbox) AS days(day) ORDER BY 1`); err != nil {
			return err
		}
		rows, err := tx.Query(t.Context(), `SELECT relname::text FROM pg_class WHERE relnamespace = 'pawl'::regnamespace AND relkind IN ('r', 'p')
			AND NOT relispartition AND relname <> 'migration' ORDER BY relname`)
		if err != nil {
			return err
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, name := range names {
			if err = copyOut(t.Context(), tx, &b, name); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		return each(t.Context(), tx, &b, `SELECT format('SELECT setval(%L, %s);', schemaname || '.' || sequencename, last_value)
			FROM pg_sequences WHERE schemaname = 'pawl' AND last_value IS NOT NULL ORDER BY 1`)
	})
	require.NoError(t, err)
	return b.String()
}

// each writes a line for each row of a query.
func each(ctx context.Context, tx pgx.Tx, w io.Writer, sql string) error {
	rows, err := tx.Query(ctx, sql)
	if err != nil {
		return err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, line := range lines {
		_, _ = fmt.Fprintln(w, line)
	}
	return err
}

func copyOut(ctx context.Context, tx pgx.Tx, b *bytes.Buffer, table string) error {
	var columns string
	if err := tx.QueryRow(ctx, `SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
		WHERE attrelid = ('pawl.' || quote_ident($1))::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`,
		table).Scan(&columns); err != nil {
		return err
	}
	name := "pawl." + pgx.Identifier{table}.Sanitize()
	var rows bytes.Buffer
	if _, err := tx.Conn().PgConn().CopyTo(ctx, &rows, fmt.Sprintf("COPY (SELECT %s FROM %s) TO STDOUT", columns, name)); err != nil {
		return err
	}
	if rows.Len() > 0 {
		// A migration may have put a row there.
		fmt.Fprintf(b, "DELETE FROM %s;\nCOPY %[1]s (%s) FROM stdin;\n%s\\.\n", name, columns, rows.String())
	}
	return nil
}

// load runs a script of dump's on an empty database.
func load(t *testing.T, pool *pgxpool.Pool, script string) {
	t.Helper()
	run := func(sql string) {
		_, err := pool.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
	}
	tables, data, found := strings.Cut(script, dataBegins)
	require.True(t, found, "the dump has no data")
	run(tables)
	for data != "" {
		line, rest, _ := strings.Cut(data, "\n")
		if !strings.HasPrefix(line, "COPY ") {
			run(line)
			data = rest
			continue
		}
		rows, after, _ := strings.Cut("\n"+rest, "\n\\.\n")
		require.NoError(t, pool.AcquireFunc(t.Context(), func(c *pgxpool.Conn) error {
			_, err := c.Conn().PgConn().CopyFrom(t.Context(), strings.NewReader(rows[1:]+"\n"), strings.TrimSuffix(line, ";"))
			return err
		}), line)
		data = after
	}
}

func readDump(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = f.Close() }() // it was only read
	z, err := gzip.NewReader(bufio.NewReader(f))
	require.NoError(t, err)
	text, err := io.ReadAll(z)
	require.NoError(t, err)
	return string(text)
}

func writeDump(t *testing.T, path, script string) {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = io.WriteString(z, script)
	}
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = os.WriteFile(path, b.Bytes(), 0o644)
	}
	require.NoError(t, err)
}
