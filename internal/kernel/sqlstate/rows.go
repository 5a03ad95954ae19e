package sqlstate

import (
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Where is the place where a caller of the functions in SQL retries.
type Where string

// The zero value means that a retry does not help.
const (
	InFunction    Where = "in the function"             // the function does it; the error does not reach the caller
	AtTransaction Where = "at the transaction boundary" // roll back, begin another transaction, claim the key again
	ByCaller      Where = "by the caller, later"        // roll back, wait, call again
)

// Key is the key of the next attempt.
type Key string

// The zero value means that no key helps: the call has to change.
const (
	SameKey Key = "the same key"
	NewKey  Key = "a new key" // for a new intent
)

// Row is a row of the table.
type Row struct {
	State   string   // a SQLSTATE; an x stands for any character
	On      []string // the constraints of Pawl's tables, or the table, that the row is limited to; nil: all others
	Meaning string
	Class   Class // in statements of the commit pipeline
	Where   Where // for callers of the functions in SQL
	Key     Key
}

// Rows is the table. The first row that matches an error counts.
var Rows = []Row{
	{"08xxx", nil, "the connection is lost or refused; if it was lost in a COMMIT, the outcome is unknown", Disconnected, ByCaller, SameKey},
	{"0A000", nil, "only the engine can make the transition: submit it there", Defect, "", ""},
	{"22xxx", nil, "invalid argument", Defect, "", ""},
	{"23502", nil, "an argument that is required is NULL", Defect, "", ""},
	{"23505", []string{"command_pkey"}, "another transaction has claimed the key: `claim` waits for it and returns its outcome", Conflict,
		InFunction, SameKey},
	{"23505", []string{"instance_pkey", "audit_pkey"}, "the business key is taken; the engine finds the instance and answers for it", Conflict,
		"", NewKey},
	{"23505", nil, "a unique constraint of another table", Defect, "", ""},
	{"23514", []string{"outbox"}, "the partition for the events of this week is missing: `transition` makes it", NoPartition,
		InFunction, SameKey},
	{"23514", nil, "an argument that a table does not take, such as attributes that are not texts", Defect, "", ""},
	{"25006", nil, "the session is read-only: the server is a standby, or the transaction is READ ONLY", Disconnected, ByCaller, SameKey},
	{"25P02", nil, "an earlier statement of the transaction failed, and its error counts", Defect, AtTransaction, SameKey},
	{"25P03", nil, "the session was idle in a transaction for too long, and the server closed it", Disconnected, ByCaller, SameKey},
	{"40001", nil, "another transaction won, or the transaction is not READ COMMITTED and cannot see the winner", Conflict,
		AtTransaction, SameKey},
	{"40P01", nil, "a deadlock: the locks that are held before a savepoint stay held", Conflict, AtTransaction, SameKey},
	{"42501", nil, "the role lacks a right", Defect, "", ""},
	{"53xxx", nil, "the server lacks memory, disk space or connections", NoRoom, ByCaller, SameKey},
	{"55000", nil, "the state, the definition or a pause does not allow the transition; after the pause the same key helps", Defect, "", ""},
	{"55P03", nil, "a lock was not available within `lock_timeout`", LockTaken, ByCaller, SameKey},
	{"57014", nil, "the statement was cancelled, or ran into `statement_timeout`", Canceled, ByCaller, SameKey},
	{"57Pxx", nil, "the server is stopping or starting, or an administrator ended the session", Disconnected, ByCaller, SameKey},
	{"P4000", nil, "the scope is missing, too long, or reserved", Defect, "", ""},
	{"P4001", nil, "the key or the message id is missing or too long", Defect, "", ""},
	{"P4002", nil, "the key was used with another request", Defect, "", NewKey},
	{"P4003", nil, "the hash is missing or is not 32 bytes", Defect, "", ""},
	{"P4010", nil, "this attempt does not hold the command any more: only a new claim reports its outcome", Defect, AtTransaction, SameKey},
	{"P4011", nil, "this attempt does not hold the command any more, and cannot fail it", Defect, AtTransaction, SameKey},
	{"P4029", nil, "a command with this key is in progress", Defect, ByCaller, SameKey},
	{"P4030", nil, "the command has failed permanently; the detail is the stored problem", Defect, "", NewKey},
	{"P4050", nil, "the message id was used with another payload", Defect, "", ""},
	{"P4099", nil, "the key is past its retention period: its answer is removed, and it will not run again", Defect,
		"", ""},
}

// Find returns the row that an error of the database matches, or nil. name is the schema of Pawl's tables.
func Find(e *pgconn.PgError, name string) *Row {
	for i := range Rows {
		if Rows[i].matches(e, name) {
			return &Rows[i]
		}
	}
	return nil
}

// Classify returns the class of an error of the database. An error that the table does not have is a Defect.
func Classify(e *pgconn.PgError, name string) Class {
	if r := Find(e, name); r != nil {
		return r.Class
	}
	return Defect
}

func (r *Row) matches(e *pgconn.PgError, name string) bool {
	if !strings.HasPrefix(e.Code, strings.TrimRight(r.State, "x")) {
		return false
	}
	if r.On == nil {
		return true
	}
	on := e.ConstraintName
	if on == "" { // no partition takes the row: the error names the table only
		on = e.TableName
	}
	return name != "" && e.SchemaName == name && slices.Contains(r.On, on)
}

// Example returns an error that the row matches, in a schema of that name.
func (r *Row) Example(name string) *pgconn.PgError {
	e := &pgconn.PgError{Code: strings.ReplaceAll(r.State, "x", "0")}
	switch {
	case r.Class == NoPartition:
		e.SchemaName, e.TableName = name, r.On[0]
	case r.On != nil:
		e.SchemaName, e.ConstraintName = name, r.On[0]
	}
	return e
}
