package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrRights reports that the role of a node lacks required rights. Grant adds them.
var ErrRights = errors.New("the role lacks rights that a node needs")

// kind is a kind of object.
type kind string

const (
	schemas    kind = "SCHEMA"
	tables     kind = "TABLE"
	sequences  kind = "SEQUENCE"
	functions  kind = "FUNCTION"  // all functions of the schema
	partitions kind = "PARTITION" // all partitions of the schema
)

// Right is a privilege of a node on a kind of object.
type Right struct {
	Kind      string // SCHEMA, TABLE, SEQUENCE, FUNCTION or PARTITION
	Object    string // name of a table or sequence; "" for the schema, all functions and all partitions
	Privilege string // such as SELECT
}

func (r Right) String() string {
	switch kind(r.Kind) {
	case tables, sequences:
		return r.Privilege + " on " + r.Object
	case schemas:
		return r.Privilege + " on the schema"
	}
	return r.Privilege + " on a " + strings.ToLower(r.Kind)
}

// needed lists the rights of a node. Row locks of any strength require UPDATE. A node never deletes from instance, audit, outbox and log.
var needed = []struct {
	kind       kind
	privileges string
	objects    []string
}{
	{schemas, "USAGE", []string{""}},
	{tables, "SELECT", []string{"migration"}},
	{tables, "SELECT, UPDATE", []string{"leadership"}},
	{tables, "SELECT, INSERT", []string{"command_history"}},
	{tables, "SELECT, INSERT, UPDATE",
		[]string{"instance", "audit", "outbox", "log", "definition", "horizon", "instance_migration", "api_key"}},
	{tables, "SELECT, INSERT, DELETE", []string{"ticket_key"}},
	{tables, "SELECT, INSERT, UPDATE, DELETE",
		[]string{"command", "begins", "node", "paused", "outbox_sink", "outbox_cursor", "outbox_dead", "inbox_dead",
			"inbox_kept", "scope_day", "schedule"}},
	{partitions, "SELECT", []string{""}},
	{sequences, "USAGE", []string{"provisional"}},
	{functions, "EXECUTE", []string{""}},
}

// partitionNames selects the partitions in the schema $1, including detached ones.
const partitionNames = `SELECT c.relname::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relname ~ '^(outbox_[0-9]{4,}w[0-9]{2}|command_history_[0-9]{4,}m[0-9]{2})$'
ORDER BY c.relname`

// Grants returns the statements that give a role the rights of a node on tables that another role owns and migrates. existing are the
// current partitions; make_partition grants the rights of a table to new ones.
func Grants(name, role string, existing []string) []string {
	var list []string
	to := " TO " + pgx.Identifier{role}.Sanitize()
	own := pgx.Identifier{name}.Sanitize()
	for _, n := range needed {
		objects := n.objects
		switch n.kind {
		case schemas:
			list = append(list, "GRANT "+n.privileges+" ON SCHEMA "+own+to)
			continue
		case functions:
			list = append(list, "GRANT "+n.privileges+" ON ALL FUNCTIONS IN SCHEMA "+own+to)
			continue
		case partitions:
			objects = existing
		}
		if len(objects) == 0 {
			continue
		}
		qualified := make([]string, len(objects))
		for i, o := range objects {
			qualified[i] = pgx.Identifier{name, o}.Sanitize()
		}
		what := "TABLE"
		if n.kind == sequences {
			what = "SEQUENCE"
		}
		list = append(list, "GRANT "+n.privileges+" ON "+what+" "+strings.Join(qualified, ", ")+to)
	}
	return list
}

// PlanGrants returns the statements of [Grant] without executing them.
//
// Errors: ErrBehind, ErrNewer and ErrForeign; those of the database.
func PlanGrants(ctx context.Context, pool *pgxpool.Pool, name, role string) ([]string, error) {
	if err := Check(ctx, pool, name); err != nil {
		return nil, err
	}
	rows, _ := pool.Query(ctx, partitionNames, pgx.QueryExecModeExec, name) // CollectRows returns its error
	existing, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list the partitions of schema %s: %w", name, err)
	}
	return Grants(name, role, existing), nil
}

// Grant gives a role the rights of a node in one transaction, and returns the statements. The owner
// of the tables calls it after each migration. Existing rights are kept.
//
// Errors: those of [PlanGrants]; those of the database, for example for an unknown role.
func Grant(ctx context.Context, pool *pgxpool.Pool, name, role string) ([]string, error) {
	list, err := PlanGrants(ctx, pool, name, role)
	if err != nil {
		return nil, err
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		for _, sql := range list {
			if _, err := tx.Exec(ctx, sql, pgx.QueryExecModeExec); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("grant rights on schema %s: %w", name, err)
	}
	return list, nil
}

// missingSQL selects the rights that the current role lacks. It only reads catalogs and needs no
// rights itself. Parameters: the schema; kinds, objects and privileges in parallel.
const missingSQL = `
SELECT r.kind, r.object, r.privilege
FROM unnest($2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS r(kind, object, privilege, n)
LEFT JOIN pg_namespace AS s ON s.nspname = $1
WHERE NOT coalesce(CASE r.kind
	WHEN 'SCHEMA' THEN has_schema_privilege(s.oid, r.privilege)
	WHEN 'TABLE' THEN (SELECT has_table_privilege(c.oid, r.privilege) FROM pg_class AS c WHERE c.relnamespace = s.oid AND c.relname = r.object)
	WHEN 'SEQUENCE' THEN (SELECT has_sequence_privilege(c.oid, r.privilege) FROM pg_class AS c
		WHERE c.relnamespace = s.oid AND c.relname = r.object AND c.relkind = 'S')
	WHEN 'FUNCTION' THEN (SELECT bool_and(has_function_privilege(p.oid, r.privilege)) FROM pg_proc AS p WHERE p.pronamespace = s.oid)
	WHEN 'PARTITION' THEN (SELECT coalesce(bool_and(has_table_privilege(c.oid, r.privilege)), true) FROM pg_class AS c
		WHERE c.relnamespace = s.oid AND c.relkind = 'r' AND c.relname ~ '^(outbox_[0-9]{4,}w[0-9]{2}|command_history_[0-9]{4,}m[0-9]{2})$')
	END, false)
ORDER BY r.n`

// Missing returns the rights of a node that the current role lacks on an existing schema.
func Missing(ctx context.Context, by interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, name string) ([]Right, error) {
	var kinds, objects, privileges []string
	for _, n := range needed {
		for _, o := range n.objects {
			for p := range strings.SplitSeq(n.privileges, ", ") {
				kinds, objects, privileges = append(kinds, string(n.kind)), append(objects, o), append(privileges, p)
			}
		}
	}
	rows, _ := by.Query(ctx, missingSQL, pgx.QueryExecModeExec, name, kinds, objects, privileges) // CollectRows returns its error
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Right])
	if err != nil {
		return nil, fmt.Errorf("read the rights on schema %s: %w", name, err)
	}
	return list, nil
}

// CheckRights reports whether the current role has the rights of a node: nil, ErrRights, or an error of the database.
func CheckRights(ctx context.Context, pool *pgxpool.Pool, name string) error {
	list, err := Missing(ctx, pool, name)
	if err != nil || len(list) == 0 {
		return err
	}
	more := ""
	if n := len(list) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	return fmt.Errorf(`%w on schema %s: %s%s; as the owner of the tables, run "migrate grants %s"`, ErrRights, name, list[0], more,
		pool.Config().ConnConfig.User)
}
