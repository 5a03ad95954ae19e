package bench

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/pawlhq/pawl/internal/rows"
)

// The columns that the ceiling writes, without the tenant, in the order in which
// it fills them.
var (
	idColumns       = []rows.Column{rows.Of("id", rows.UUID)}
	keyColumns      = []rows.Column{rows.Of("scope", rows.Text), rows.Of("key", rows.Text)}
	instanceColumns = []rows.Column{
		rows.Of("id", rows.UUID), rows.Of("state", rows.Text), rows.Of("version", rows.Int8), rows.Of("data", rows.JSON),
		rows.Of("chain", rows.Bytea), rows.Of("updated_at", rows.Timestamptz),
	}
	commandColumns = []rows.Column{
		rows.Of("scope", rows.Text), rows.Of("key", rows.Text), rows.Of("fingerprint", rows.Bytea), rows.Of("status", rows.Text),
		rows.Of("workflow", rows.Text), rows.Of("transition", rows.Text), rows.Of("instance", rows.UUID), rows.Of("version", rows.Int8),
		rows.Of("actor", rows.Text), rows.Of("code", rows.Int2), rows.Of("body", rows.Text),
		rows.Of("created_at", rows.Timestamptz), rows.Of("finished_at", rows.Timestamptz), rows.Of("expires_at", rows.Timestamptz),
	}
	auditColumns = []rows.Column{
		rows.Of("position", rows.Int8),
		rows.Of("workflow", rows.Text), rows.Of("transition", rows.Text), rows.Of("instance", rows.UUID), rows.Of("version", rows.Int8),
		rows.Of("from_state", rows.Text), rows.Of("to_state", rows.Text), rows.Of("actor", rows.Text),
		rows.Of("payload", rows.JSON), rows.Of("data", rows.JSON), rows.Of("scope", rows.Text), rows.Of("key", rows.Text),
		rows.Of("at", rows.Timestamptz), rows.Of("hash", rows.Bytea),
	}
	eventColumns = []rows.Column{
		rows.Of("position", rows.Int8), rows.Of("type", rows.Text), rows.Of("ordinal", rows.Int4),
		rows.Of("workflow", rows.Text), rows.Of("transition", rows.Text), rows.Of("instance", rows.UUID), rows.Of("version", rows.Int8),
		rows.Of("state", rows.Text), rows.Of("at", rows.Timestamptz), rows.Of("business_key", rows.Text),
	}
)

// ceilingStatements are one connection's: a rows.Conn knows them by address.
// Every one but begin and commit takes the tenant first.
type ceilingStatements struct {
	begin, lock, lookup, update, command, head, audit, emit, commit rows.Statement
}

func newCeilingStatements() *ceilingStatements {
	return &ceilingStatements{
		begin: rows.Statement{SQL: "BEGIN"},
		lock: withSource(`SELECT 1 FROM %s CROSS JOIN LATERAL
			(SELECT 1 FROM pawl.instance WHERE tenant = $1 AND id = u.id LIMIT 1 FOR NO KEY UPDATE) i`, idColumns),
		lookup: withSource(`SELECT 1 FROM %s CROSS JOIN LATERAL
			(SELECT 1 FROM pawl.command WHERE tenant = $1 AND scope = u.scope AND key = u.key LIMIT 1) c`, keyColumns),
		update: withSource(`UPDATE pawl.instance i
			SET state = u.state, version = u.version, data = u.data, chain = u.chain, updated_at = u.updated_at
			FROM %s WHERE i.tenant = $1 AND i.id = u.id`, instanceColumns),
		command: inserting("command", commandColumns),
		head: rows.Statement{SQL: in("UPDATE pawl.log SET head = head + $2 WHERE tenant = $1"),
			OIDs: []uint32{rows.Text.OID(false), rows.Int8.OID(false)}},
		audit:  inserting("audit", auditColumns),
		emit:   inserting("outbox", eventColumns),
		commit: rows.Statement{SQL: "COMMIT"},
	}
}

func inserting(table string, columns []rows.Column) rows.Statement {
	names := rows.Names(columns)
	return withSource("INSERT INTO pawl."+table+" (tenant, "+names+") SELECT $1, "+names+" FROM %s", columns)
}

// withSource puts the source u, the columns' arrays side by side, into a
// statement whose first parameter is the tenant.
func withSource(sql string, columns []rows.Column) rows.Statement {
	s := rows.Statement{OIDs: []uint32{rows.Text.OID(false)}}
	arrays := make([]string, len(columns))
	for i, c := range columns {
		s.OIDs = append(s.OIDs, c.Type.OID(true))
		arrays[i] = fmt.Sprintf("$%d::%s[]", i+2, c.Type.Name)
	}
	source := "unnest(" + strings.Join(arrays, ", ") + ") AS u(" + rows.Names(columns) + ")"
	s.SQL = in(fmt.Sprintf(sql, source))
	return s
}

func int8Param(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
