package store

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
)

// A reconstructed answer equals the first one byte by byte.
func TestAnAnswerIsPutTogetherAsItWas(t *testing.T) {
	pool := pgtest.DirectPool(t)
	pg, err := pgx.Connect(t.Context(), pool.Config().ConnString())
	require.NoError(t, err)
	defer func() { _ = pg.Close(t.Context()) }()
	conn := rows.NewConn(pg.PgConn())
	second := time.Date(2026, 3, 1, 23, 59, 50, 0, time.UTC)
	for key, tt := range map[string]struct {
		at     time.Time
		result string
	}{
		"whole seconds": {at: second}, "a tenth": {at: second.Add(100 * time.Millisecond)}, "a microsecond": {at: second.Add(time.Microsecond)},
		"six digits": {at: second.Add(123456 * time.Microsecond)}, "the last year": {at: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)},
		"a result": {second, `{"total": 2,"text":"\u2028 é"}`}, "null": {second, `null`},
	} {
		told := transitions.Result{Instance: uuid.New(), Workflow: "order-1", Transition: "pay_all", State: "paid", Version: 1 << 40, At: tt.at,
			Result: []byte(tt.result)}
		c := Command{State: told.State, Row: decide.Row{Record: transitions.Record{Scope: "s", Key: key, Status: transitions.Succeeded,
			Workflow:   told.Workflow,
			Transition: told.Transition, Instance: told.Instance, Version: told.Version, Actor: "ann", Code: 200, CreatedAt: tt.at,
			FinishedAt: tt.at, ExpiresAt: tt.at}}}
		if tt.result != "" {
			c.Body = told.Result
		}
		done := Done()
		require.NoError(t, done.Add("t", &c))
		none := uuid.Nil
		queue(conn, rows.OneTenant, func(b *rows.Builder) { InsertCommands(b, "") },
			append([][]byte{[]byte("t")}, done.Params(rows.OneTenant)...), nil)
		var got *transitions.Record
		queue(conn, rows.Single, ReadBoth, [][]byte{[]byte("t"), none[:], []byte(c.Scope), []byte(c.Key)}, func(r *rows.Row) (err error) {
			if _, err = ReadInstance(r, "t"); err == nil {
				got, err = ReadRecord(r)
			}
			return err
		})
		require.NoError(t, conn.Send(t.Context()))
		want := string(decide.Answer(told))
		assert.Equalf(t, want, string(got.Body), "%s: read as %s", key, got.Body)
		var said string
		if err := pool.QueryRow(t.Context(), "SELECT pawl.answer(c) FROM pawl.command AS c WHERE key = $1", key).Scan(&said); err != nil ||
			said != want {
			t.Errorf("%s: in SQL it is %s\nwant %s (%v)", key, said, want, err)
		}
	}
}
