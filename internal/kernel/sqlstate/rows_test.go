package sqlstate

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/workflow"
)

func TestRowsAreReachable(t *testing.T) {
	t.Parallel()
	for i := range Rows {
		r := &Rows[i]
		got := Find(r.Example("pawl"), "pawl")
		assert.Truef(t, got == r, "an error like %+v is taken for %+v", r, got)
		assert.Truef(t, (r.Where == "" || r.Key == SameKey) && r.Meaning != "", "a retry without its key, or no meaning: %+v", r)
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		e    pgconn.PgError
		want Class
	}{
		{pgconn.PgError{Code: "23505", SchemaName: "pawl", ConstraintName: "command_pkey"}, Conflict},
		{pgconn.PgError{Code: "23505", SchemaName: "pawl", ConstraintName: "audit_pkey"}, Conflict},
		{pgconn.PgError{Code: "23505", SchemaName: "shop", ConstraintName: "command_pkey"}, Defect},
		{pgconn.PgError{Code: "23505", SchemaName: "pawl", ConstraintName: "api_key_pkey"}, Defect},
		{pgconn.PgError{Code: "23514", SchemaName: "pawl", TableName: "outbox"}, NoPartition},
		{pgconn.PgError{Code: "23514", SchemaName: "pawl", TableName: "outbox", ConstraintName: "outbox_check"}, Defect},
		{pgconn.PgError{Code: "57014"}, Canceled},
		{pgconn.PgError{Code: "57P03"}, Disconnected},
		{pgconn.PgError{Code: "08P01"}, Disconnected},
		{pgconn.PgError{Code: "53100"}, NoRoom},
		{pgconn.PgError{Code: "XX000"}, Defect},
		{pgconn.PgError{}, Defect},
	} {
		assert.Equalf(t, c.want, Classify(&c.e, "pawl"), "%+v is of class", c.e)
		got := Classify(&c.e, "")
		assert.Truef(t, got != Conflict && got != NoPartition, "%+v is Pawl's own without its schema", c.e)
	}
}

// The functions in SQL and the engine refuse the same things, so the advice is the same.
func TestRowsAgreeWithCodes(t *testing.T) {
	t.Parallel()
	for _, c := range workflow.Codes {
		if c.SQLState == "" {
			continue
		}
		r := Find(&pgconn.PgError{Code: c.SQLState}, "pawl")
		switch {
		case r == nil:
			t.Errorf("%s of %s is missing", c.SQLState, c.Code)
		case c.Final && (r.Where != "" || r.Key != NewKey), c.Retry && (r.Where != ByCaller || r.Key != SameKey),
			!c.Retry && c.Code != workflow.LeaseLost && r.Where != "":
			t.Errorf("%s: %+v, and the code %s is final: %v, may succeed later: %v", c.SQLState, r, c.Code, c.Final, c.Retry)
		}
	}
}
