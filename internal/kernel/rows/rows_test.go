package rows

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// connect opens a connection to an empty database.
func connect(t testing.TB) *pgx.Conn {
	t.Helper()
	pg, err := pgx.Connect(t.Context(), pgtest.DirectURL(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = pg.Close(context.Background()) }) // a test may have closed it
	return pg
}

// everyType has a column of each type, as they are named in Go.
var everyType = []Column{
	Of("bo", Bool), Of("by", Bytea), Of("i8", Int8), Of("i2", Int2), Of("i4", Int4), Of("tx", Text), Of("ti", TID),
	Of("js", JSON), Of("ts", Timestamptz), Of("id", UUID), Of("jb", JSONB),
}

// record is a row of everyType; a nil field is NULL.
type record struct {
	bo         *bool
	by, js, jb []byte
	i8         *int64
	i2, i4     *int
	tx         *string
	ti         *RowID
	ts         *time.Time
	id         *uuid.UUID
}

func (r *record) add(s *Set) {
	s.Tenant("acme")
	put(s, r.bo, s.Bool)
	s.Bytes(r.by)
	put(s, r.i8, s.Int8)
	put(s, r.i2, s.Int2)
	put(s, r.i4, s.Int4)
	put(s, r.tx, s.Text)
	put(s, r.ti, s.TID)
	s.Bytes(r.js)
	put(s, r.ts, s.Time)
	put(s, r.id, s.UUID)
	s.JSONB(r.jb)
}

func put[T any](s *Set, v *T, add func(T)) {
	if v == nil {
		s.Null()
		return
	}
	add(*v)
}

func readRecord(r *Row) *record {
	return &record{bo: get(r, r.Bool), by: r.Bytes(), i8: get(r, r.Int8), i2: get(r, r.Int2), i4: get(r, r.Int4), tx: get(r, r.Text),
		ti: get(r, r.TID), js: r.Bytes(), ts: get(r, r.Time), id: get(r, r.UUID), jb: r.JSONB()}
}

func get[T any](r *Row, read func() T) *T {
	if r.IsNull() {
		r.Skip(1)
		return nil
	}
	v := read()
	return &v
}

func at(text string) *time.Time {
	v, err := time.Parse("2006-01-02T15:04:05.999999Z", text)
	if err != nil {
		panic(err)
	}
	return &v
}

var records = []record{
	{}, // all NULL
	{bo: new(false), by: []byte{}, i8: new(int64(0)), i2: new(0), i4: new(0), tx: new(""), ti: &RowID{}, js: []byte(`{}`),
		ts: at("2000-01-01T00:00:00Z"), id: &uuid.UUID{}, jb: []byte(`{}`)},
	{bo: new(true), by: []byte("\x00\xff\\"), i8: new(int64(math.MaxInt64)), i2: new(math.MaxInt16), i4: new(math.MaxInt32),
		tx: new("é\u2028'\"\\ {,}"),
		ti: &RowID{0, 0, 0, 7, 0, 3}, js: []byte(` {"b":1, "a":"\u0000"}`), ts: at("9999-12-31T23:59:59.999999Z"),
		id: new(uuid.MustParse("01936b0e-0000-7000-8000-000000000001")), jb: []byte(`{"a": [1, null]}`)},
	{bo: new(true), by: bytes.Repeat([]byte{1, 0, 255}, 400_000), i8: new(int64(math.MinInt64)), i2: new(math.MinInt16),
		i4: new(math.MinInt32),
		tx: new(strings.Repeat("long é ", 100_000)), js: []byte(`"` + strings.Repeat("x", 1<<20) + `"`), ts: at("0001-01-01T00:00:00.000001Z")},
	{ts: at("1969-12-31T23:59:59.999999Z"), js: []byte(`null`), jb: []byte(`null`)},
	{ts: at("1999-12-31T23:59:59.999999Z"), tx: new("NULL")},
}

func echo(f Form) *Statement {
	b := For(f)
	b.Add("SELECT ", Names(everyType), ", ord::bigint, ", b.Tenant(), " FROM ").Source(everyType).Add(" ORDER BY ord")
	s := b.Statement()
	return &s
}

func TestEveryTypeComesBackAsAScalar(t *testing.T) {
	t.Parallel()
	conn := NewConn(connect(t).PgConn())
	stmt := echo(Single)
	s := NewSet(everyType)
	for i, want := range records {
		s.Reset()
		want.add(s)
		var got []*record
		conn.Queue(stmt, append([][]byte{[]byte("acme")}, s.Params(Single)...),
			func(r *Row) error { got = append(got, readRecord(r)); return nil })
		require.NoErrorf(t, conn.Send(t.Context()), "row %d", i)
		assert.Truef(t, len(got) == 1 && reflect.DeepEqual(*got[0], want),
			"row %d: got %.200v, want %.200v", i, show(got...), show(&want))
	}
}

func TestEveryTypeComesBackFromAnArrayOfAnyLength(t *testing.T) {
	t.Parallel()
	t.Run("of one tenant", func(t *testing.T) { echoArrays(t, OneTenant, []byte("acme")) })
	t.Run("of many", func(t *testing.T) { echoArrays(t, ManyTenants) })
}

func echoArrays(t *testing.T, f Form, first ...[]byte) {
	conn := NewConn(connect(t).PgConn())
	stmt := echo(f)
	s := NewSet(everyType)
	for n := range len(records) + 1 {
		s.Reset()
		for i := range n {
			records[i].add(s)
		}
		require.Equal(t, n, s.Len(), "rows")
		got := 0
		conn.Queue(stmt, slices.Concat(first, s.Params(f)), func(r *Row) error {
			row := readRecord(r)
			assert.Equalf(t, int64(got+1), r.Int8(), "row %d has the number", got)
			assert.Equalf(t, "acme", r.Text(), "row %d is of the tenant", got)
			assert.Equalf(t, records[got], *row, "row %d of %d: got %.200v", got, n, show(row))
			got++
			return r.Err()
		})
		require.NoErrorf(t, conn.Send(t.Context()), "%d rows", n)
		assert.Equal(t, n, got, "rows came back of")
	}
}

func show(rows ...*record) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "{%v %.20q %v %v %v %v %v %.20q %v %v %.20q} ", deref(r.bo), r.by, deref(r.i8), deref(r.i2), deref(r.i4),
			deref(r.tx), deref(r.ti), r.js, deref(r.ts), deref(r.id), r.jb)
	}
	return b.String()
}

func deref[T any](v *T) string {
	if v == nil {
		return "NULL"
	}
	return fmt.Sprintf("%.30v", *v)
}

// Two mistakes could hide each other on the way there and back, so the server says what it understood.
func TestTheServerUnderstandsWhatIsMeant(t *testing.T) {
	t.Parallel()
	pg := connect(t)
	_, err := pg.Exec(t.Context(), `SET timezone = 'UTC'; SET datestyle = 'ISO'`)
	require.NoError(t, err)
	conn := NewConn(pg.PgConn())
	id := uuid.MustParse("01936b0e-0000-7000-8000-000000000001")
	for _, tt := range []struct {
		typ  Type
		add  func(*Set)
		want string
	}{
		{Bool, func(s *Set) { s.Bool(true) }, "true"},
		{Bytea, func(s *Set) { s.Bytes([]byte{0, 255}) }, `\x00ff`},
		{Int8, func(s *Set) { s.Int8(-2) }, "-2"},
		{Int2, func(s *Set) { s.Int2(-3) }, "-3"},
		{Int4, func(s *Set) { s.Int4(1 << 20) }, "1048576"},
		{Text, func(s *Set) { s.Text("") }, ""},
		{Text, func(s *Set) { s.TextOrNull("") }, "NULL"},
		{Text, func(s *Set) { s.TextOrNull("é") }, "é"},
		{Text, func(s *Set) { s.Bytes([]byte("by bytes")) }, "by bytes"},
		{Text, func(s *Set) { s.Bytes(nil) }, "NULL"},
		{TID, func(s *Set) { s.TID(RowID{0, 0, 1, 0, 0, 5}) }, "(256,5)"},
		{JSON, func(s *Set) { s.Bytes([]byte(`{"b": 1,"a":2}`)) }, `{"b": 1,"a":2}`},
		{JSON, func(s *Set) { s.Text(`[]`) }, `[]`},
		{JSONB, func(s *Set) { s.JSONB([]byte(`{"b":1,"a":2}`)) }, `{"a": 2, "b": 1}`},
		{JSONB, func(s *Set) { s.JSONB(nil) }, "NULL"},
		{UUID, func(s *Set) { s.UUID(id) }, id.String()},
		{Timestamptz, func(s *Set) { s.Time(*at("0001-01-01T00:00:00.000001Z")) }, "0001-01-01 00:00:00.000001+00"},
		{Timestamptz, func(s *Set) { s.Time(*at("1969-12-31T23:59:59.999999Z")) }, "1969-12-31 23:59:59.999999+00"},
		{Timestamptz, func(s *Set) { s.Time(*at("2000-01-01T00:00:00Z")) }, "2000-01-01 00:00:00+00"},
		{Timestamptz, func(s *Set) { s.Time(*at("9999-12-31T23:59:59.999999Z")) }, "9999-12-31 23:59:59.999999+00"},
		{Timestamptz, func(s *Set) { s.Time(time.Date(2026, 3, 1, 13, 0, 0, 1999, time.FixedZone("", 3600))) }, "2026-03-01 12:00:00.000001+00"},
	} {
		for _, form := range []Form{Single, OneTenant} {
			columns := []Column{Of("v", tt.typ)}
			b := For(form)
			b.Add("SELECT coalesce(v::text, 'NULL') FROM ").Source(columns)
			stmt := b.Statement()
			s := NewSet(columns)
			s.Tenant("acme")
			tt.add(s)
			var got string
			conn.Queue(&stmt, append([][]byte{[]byte("acme")}, s.Params(form)...), func(r *Row) error { got = r.Text(); return r.Err() })
			require.NoError(t, conn.Send(t.Context()), tt.typ.Name)
			assert.Equalf(t, tt.want, got, "%s, form %d: the server has", tt.typ.Name, form)
		}
	}
}

func TestASetForgetsOnlyItsRows(t *testing.T) {
	t.Parallel()
	s := NewSet([]Column{Of("a", Text), Of("b", Int8)})
	s.Tenant("acme")
	s.Null()
	s.Int8(1)
	s.Reset()
	assert.Equal(t, 0, s.Len(), "rows after Reset")
	s.Tenant("acme")
	s.Text("x")
	s.Int8(2)
	got := s.Params(OneTenant)[0]
	assert.Equal(t, byte(0), got[7], "the array says that it has NULLs, from before Reset")
	assert.Equal(t, "x", string(s.Params(Single)[0]))
}

func TestParamsOfHalfARowIsAMistakeOfTheProgram(t *testing.T) {
	t.Parallel()
	s := NewSet([]Column{Of("a", Text), Of("b", Int8)})
	s.Tenant("acme")
	s.Text("x")
	defer func() {
		assert.NotNil(t, recover(), "half a row was taken for a whole one")
	}()
	s.Params(OneTenant)
}

func TestABuilderNumbersItsParameters(t *testing.T) {
	t.Parallel()
	columns := []Column{Of("id", UUID), Of("n", Int4)}
	for _, tt := range []struct {
		form Form
		sql  string
		oids []uint32
	}{
		{Single, "SELECT $1::text, $2::bigint FROM (VALUES ($3::uuid, $4::int, 1)) AS u(id, n, ord)", []uint32{25, 20, 2950, 23}},
		{OneTenant, "SELECT $1::text, $2::bigint FROM unnest($3::uuid[], $4::int[]) WITH ORDINALITY AS u(id, n, ord)",
			[]uint32{25, 20, 2951, 1007}},
		{ManyTenants, "SELECT u.tenant, $1::bigint FROM unnest($2::text[], $3::uuid[], $4::int[]) WITH ORDINALITY AS u(tenant, id, n, ord)",
			[]uint32{20, 1009, 2951, 1007}},
	} {
		b := For(tt.form)
		b.Add("SELECT ", b.Tenant(), ", ").Param(Int8, false).Add(" FROM ").Source(columns)
		got := b.Statement()
		assert.Truef(t, got.SQL == tt.sql && reflect.DeepEqual(got.OIDs, tt.oids), "got %+v, want %s %v", got, tt.sql, tt.oids)
	}
}

// A set is kept in a pool between groups.
func TestASetKeepsNoGiantColumn(t *testing.T) {
	s := NewSet([]Column{Of("a", Text), Of("b", Text)})
	s.Text("")
	s.Bytes(make([]byte, 2*maxKept))
	s.Reset()
	for i := range s.cols {
		got := cap(s.cols[i].buf)
		assert.Truef(t, got <= maxKept, "column %d keeps %d bytes", i, got)
	}
}
