//go:build unix

package rows

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// The columns of a command, as a commit group writes them.
var measured = []Column{Of("scope", Text), Of("key", Text), Of("fingerprint", Bytea), Of("status", Text), Of("workflow", Text),
	Of("transition", Text),
	Of("instance", UUID), Of("version", Int8), Of("actor", Text), Of("code", Int2), Of("body", Text), Of("created_at", Timestamptz),
	Of("finished_at", Timestamptz), Of("expires_at", Timestamptz)}

// BenchmarkAGroup sends the rows of a group as arrays: with this package, and as a batch of pgx with a slice for each column. It reports
// the processor time of this process per row, which other programs disturb least. The results are in docs/internals/tables.md.
func BenchmarkAGroup(b *testing.B) {
	build := For(OneTenant)
	build.Add("SELECT count(*) FROM ").Source(measured)
	s := build.Statement()
	for _, n := range []int{1, 16, 128} {
		scopes, keys, hashes, bodies := make([]string, n), make([]string, n), make([][]byte, n), make([]string, n)
		ids, at := make([]uuid.UUID, n), time.Now()
		for i := range n {
			ids[i] = uuid.New()
			scopes[i], keys[i], hashes[i], bodies[i] = "order:"+ids[i].String(), fmt.Sprint("key-", i), make([]byte, 32),
				`{"state":"paid","version":2,"data":{"total":125}}`
		}
		b.Run(fmt.Sprintf("rows/%d", n), func(b *testing.B) {
			conn, set := NewConn(connect(b).PgConn()), NewSet(measured)
			perRow(b, n, func() error {
				set.Reset()
				for i := range n {
					set.Tenant("acme")
					set.Text(scopes[i])
					set.Text(keys[i])
					set.Bytes(hashes[i])
					set.Text("succeeded")
					set.Text("order")
					set.Text("pay")
					set.UUID(ids[i])
					set.Int8(2)
					set.Text("ann")
					set.Int2(200)
					set.Text(bodies[i])
					set.Time(at)
					set.Time(at)
					set.Time(at)
				}
				conn.Queue(&s, append([][]byte{[]byte("acme")}, set.Params(OneTenant)...), nil)
				return conn.Send(b.Context())
			})
		})
		b.Run(fmt.Sprintf("batch/%d", n), func(b *testing.B) {
			conn := connect(b)
			perRow(b, n, func() error {
				text := func(v string) []string {
					list := make([]string, n)
					for i := range list {
						list[i] = v
					}
					return list
				}
				versions, codes, times := make([]*int64, n), make([]*int16, n), make([]*time.Time, n)
				version, code := int64(2), int16(200)
				for i := range n {
					versions[i], codes[i], times[i] = &version, &code, &at
				}
				var batch pgx.Batch
				batch.Queue(s.SQL, "acme", scopes, keys, hashes, text("succeeded"), text("order"), text("pay"), ids, versions, text("ann"), codes,
					bodies,
					times, times, times)
				return conn.SendBatch(b.Context(), &batch).Close()
			})
		})
	}
}

func perRow(b *testing.B, n int, send func() error) {
	b.ReportAllocs()
	before := processor(b)
	for b.Loop() {
		require.NoError(b, send())
	}
	b.ReportMetric(float64((processor(b)-before).Nanoseconds())/float64(b.N*n), "cpu-ns/row")
}

// processor is the time that this process has had of the processor.
func processor(b *testing.B) time.Duration {
	var use syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &use))
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
