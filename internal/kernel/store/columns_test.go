package store

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/transitions"
)

func TestMain(m *testing.M) { tables.Main(m) }

// byStatements are the columns that no row of the pipeline has: statements write them where they belong.
var byStatements = map[string][]string{
	"instance": {"tenant", "bucket"},
	"command":  {"tenant", "unsure", "held_until", "given_up_at", "waits_since", "paused", "parent"},
}

// A column that a migration adds must be decided about here, and has the type that the table says.
func TestEveryColumnOfTheTablesIsKnownWithItsType(t *testing.T) {
	pool := pgtest.DirectPool(t)
	known := map[string]map[string]string{"instance": typesOf(columnsOf(instanceFields)),
		"command": typesOf(slices.Concat(columnsOf(acceptedFields), columnsOf(recordFields)))}
	for table, columns := range known {
		found, err := pool.Query(t.Context(), `SELECT attname, format_type(atttypid, NULL) FROM pg_attribute
			WHERE attrelid = ('pawl.' || $1)::regclass AND attnum > 0 AND NOT attisdropped`, table)
		require.NoError(t, err)
		var name, kind string
		_, err = pgx.ForEachRow(found, []any{&name, &kind}, func() error {
			switch ours, ok := columns[name]; {
			case ok == slices.Contains(byStatements[table], name):
				t.Errorf("%s.%s: is it a field here (%v), or written by statements alone?", table, name, ok)
			case ok && ours != kind:
				t.Errorf("%s.%s is a field of %s, but the table says %s", table, name, ours, kind)
			}
			delete(columns, name)
			return nil
		})
		require.NoError(t, err)
		delete(columns, "position") // of the audit row
		for name := range columns {
			t.Errorf("%s has no column %s", table, name)
		}
	}
}

func typesOf(columns []rows.Column) map[string]string {
	full := map[string]string{"timestamptz": "timestamp with time zone", "int": "integer"}
	types := map[string]string{}
	for _, c := range columns {
		types[c.Name] = c.Type.Name
		if name, ok := full[c.Type.Name]; ok {
			types[c.Name] = name
		}
	}
	return types
}

// fill gives each field of a struct a value that no other has.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(string(rune('a'+*n%26)) + time.Duration(*n).String())
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(200 + *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(*n))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(`{"n":` + time.Duration(*n).String()[:1] + `}`))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		if fill(value, n); value.Kind() == reflect.Slice {
			value.Set(reflect.ValueOf([]string{"x"}))
		}
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2040, 1, 1, 0, 0, *n, 0, time.UTC)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	}
}

// What is written is what is read, field by field.
func TestColumns_RoundTrip(t *testing.T) {
	pool := pgtest.DirectPool(t)
	pg, err := pgx.Connect(t.Context(), pool.Config().ConnString())
	require.NoError(t, err)
	defer func() { _ = pg.Close(t.Context()) }()
	conn := rows.NewConn(pg.PgConn())
	var n int
	var inst transitions.Instance
	fill(reflect.ValueOf(&inst).Elem(), &n)
	inst.Tenant, inst.ID, inst.Links = "t", uuid.New(), transitions.Links{InFlight: &transitions.CommandRef{Transition: "a", Scope: "b",
		Key: "c"}}
	c := Command{}
	fill(reflect.ValueOf(&c.Record).Elem(), &n)
	c.Status, c.Phase, c.Code, c.Body, c.Instance, c.FinishedAt, c.ExpiresAt = transitions.Processing, transitions.Working, 0, nil, inst.ID,
		time.Time{}, time.Time{}
	c.ClaimedBy, c.RunAt = "n", time.Time{}

	created, accepted := Created(), Accepted()
	require.NoError(t, created.Add("t", &inst))
	require.NoError(t, accepted.Add("t", &c))
	tenant, lease := []byte("t"), []byte{0, 0, 0, 0, 0, 0, 1, 0}
	queue(conn, rows.OneTenant, InsertInstances, append([][]byte{tenant}, created.Params(rows.OneTenant)...), nil)
	queue(conn, rows.ManyTenants, AcceptCommands, append([][]byte{lease}, accepted.Params(rows.ManyTenants)...), nil)
	var gotInst *transitions.Instance
	var got *transitions.Record
	queue(conn, rows.Single, ReadBoth, [][]byte{tenant, inst.ID[:], []byte(c.Scope), []byte(c.Key)}, func(r *rows.Row) (err error) {
		if gotInst, err = ReadInstance(r, "t"); err == nil {
			got, err = ReadRecord(r)
		}
		return err
	})
	require.NoError(t, conn.Send(t.Context()))
	assert.Equal(t, inst, *gotInst, "instance")
	want := c.Record // and what statements write
	want.ClaimedAt, want.LockedUntil, want.Position = got.ClaimedAt, got.LockedUntil, 0
	want.Progress, want.Failure, want.Stuck, want.CancelledBy, want.BusinessKey, want.Reason, want.Proof = nil, "", "", "", "", "", ""
	assert.Equal(t, want, *got, "command")
	lasts := got.LockedUntil.Sub(got.ClaimedAt)
	assert.Truef(t, lasts > 0, "its lease lasts %s", lasts)
}

func queue(conn *rows.Conn, form rows.Form, write func(*rows.Builder), params [][]byte, row func(*rows.Row) error) {
	b := rows.For(form)
	write(b)
	s := b.Statement()
	s.SQL = pgtest.SQL(s.SQL)
	conn.Queue(&s, params, row)
}
