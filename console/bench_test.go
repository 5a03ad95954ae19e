package console_test

import (
	"encoding/base64"
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/chromium"
	"github.com/pawlhq/pawl/transitions"
)

// BenchmarkFromCommitToScreen commits on one node what a browser looks at on another, while other instances move at the rate that is
// named, and tells how long after the commit it is on the screen.
func BenchmarkFromCommitToScreen(b *testing.B) {
	const rate = 500
	s := newStand(b)
	other := s.node(func(c *service.Config) { c.Auth.Keys = true })
	id, background := s.filed("A-1", 10), s.filed("A-2", 10)
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		done := 0
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-tick.C:
				for _, r := range s.Engine().SubmitMany(b.Context(), notes(background, rate/50)) {
					if r.Err == nil {
						done++
					}
				}
			case <-stop:
				stopped <- done
				return
			}
		}
	}()
	p := s.open(other.URL(), s.key("boss", everything), "/instances/"+id.String())
	p.WaitText("#live", "live")
	chromium.Eval[any](p, `(() => {
		globalThis.seen = {};
		const look = () => { for (const e of document.querySelectorAll('#transitions > li')) globalThis.seen[e.id] ??= Date.now(); };
		new MutationObserver(look).observe(document.querySelector('main'), {childList: true, subtree: true});
	})()`)
	var took []float64
	began := time.Now()
	for b.Loop() {
		version := s.do(id, "note", "ann", `{"note":"x"}`).Version
		committed := float64(time.Now().UnixMicro()) / 1000
		seen := 0.0
		await.Eventually(b, "it is on the screen", func() bool {
			seen = chromium.Eval[float64](p, fmt.Sprintf(`globalThis.seen['v%d'] ?? 0`, version))
			return seen > 0
		})
		took = append(took, max(0, seen-committed))
	}
	close(stop)
	n := <-stopped
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "p50-ms")
	b.ReportMetric(took[len(took)*99/100], "p99-ms")
	b.ReportMetric(float64(n)/time.Since(began).Seconds(), "commits/s-beside")
}

// longLived makes a claim of so many transitions, in thousands.
func (s *stand) longLived(b *testing.B, n int) uuid.UUID {
	b.Helper()
	id := s.filed("A-1", 10)
	for range n / 1000 {
		for _, r := range s.Engine().SubmitMany(b.Context(), notes(id, 1000)) {
			require.NoError(b, r.Err)
		}
	}
	return id
}

func notes(id uuid.UUID, n int) []transitions.Command {
	list := make([]transitions.Command, n)
	for i := range list {
		list[i] = transitions.Command{Instance: id, Transition: "note", Key: uuid.NewString(), Actor: "ann", Roles: []string{transitions.AnyRole},
			Payload: []byte(`{"note":"x"}`)}
	}
	return list
}

var howMany = flag.Int("instances", 10_000_000, "how many instances BenchmarkLargeLists lists")

// grown are the instances of BenchmarkLargeLists: a claim or, every tenth, an order, one a second, whose ids are in the order of
// their creation and whose last changes are not.
const grown = `INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, attributes, open, chain, created_at,
	updated_at)
	SELECT 'default', (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '70008000' || lpad(to_hex(i), 12, '0'))::uuid, w, 1,
		s, 4,
		'{"number":"N-1234567","who":"ann","amount":100}', jsonb_build_object('who', CASE WHEN i % 3 = 0 THEN 'ann' ELSE 'w-' || i % 100000 END),
		s <> 'closed', '\xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad', at,
			at + (i::bigint * 7919 % 86400) * interval '1 second'
	FROM (SELECT i, CASE WHEN i % 10 = 0 THEN 'order' ELSE 'claim' END AS w, timestamptz '2026-01-01' + i * interval '1 second' AS at,
		CASE WHEN i % 10 = 0 THEN 'shipped' WHEN i % 5000 = 1 THEN 'unpaid' WHEN i % 10 = 2 THEN 'filed' ELSE 'closed' END AS s
		FROM generate_series($1::int, $2::int) i) AS x`

// grow fills the table of instances as days do: its indexes of lists are made afterwards, which is quicker.
func (s *stand) grow(n int) {
	s.t.Helper()
	conn := s.connect()
	exec := func(sql string, args ...any) {
		s.t.Helper()
		_, err := conn.Exec(s.t.Context(), sql, args...)
		require.NoError(s.t, err)
	}
	type index struct{ Name, Definition string }
	const lists = `SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'pawl'
		AND indexname IN ('instance_list', 'instance_attributes')`
	found, err := conn.Query(s.t.Context(), lists)
	require.NoError(s.t, err)
	indexes, err := pgx.CollectRows(found, pgx.RowToStructByPos[index])
	require.NoError(s.t, err)
	require.Len(s.t, indexes, 2)
	exec("ALTER TABLE pawl.instance SET (autovacuum_enabled = off)")
	for _, i := range indexes {
		exec("DROP INDEX pawl." + i.Name)
	}
	const piece = 1_000_000
	for from := 1; from <= n; from += piece {
		exec(grown, from, min(n, from+piece-1))
	}
	exec("SET maintenance_work_mem = '512MB'")
	for _, i := range indexes {
		exec(i.Definition)
	}
	exec("VACUUM (ANALYZE) pawl.instance")
}

// BenchmarkLargeLists tells how long the pages of lists and the overview take on a large table.
func BenchmarkLargeLists(b *testing.B) {
	s := newStand(b)
	begun := time.Now()
	s.grow(*howMany)
	b.Logf("%d instances after %s", *howMany, time.Since(begun).Round(time.Second))
	v := s.visitor(s.key("boss", everything))
	half := time.Date(2026, 1, 1, 0, 0, *howMany/2, 0, time.UTC)
	deep := cursorOf(6, binary.BigEndian.AppendUint64(nil, uint64(half.UnixMicro())), uuid.Max[:])
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:], uint64(half.UnixMilli())<<16)
	middle := cursorOf(1, id[:])
	paths := map[string]string{"overview": "/"}
	for name, filter := range map[string]string{"all": "", "workflow": "workflow=claim", "state": "state=filed",
		"rare":   "workflow=claim&state=unpaid",
		"common": "workflow=claim&state=closed", "open": "open=true", "attribute": "workflow=claim&attr.who=w-77",
		"attribute-of-a-third": "workflow=claim&attr.who=ann",
		"number":               "workflow=claim&business_key=N-1", "created": "created_after=" + half.Format("2006-01-02T15:04"),
		"updated":       "updated_after=" + half.Format("2006-01-02T15:04"),
		"state-created": "workflow=claim&state=filed&created_after=" + half.Format("2006-01-02T15:04")} {
		paths[name] = "/instances?" + filter
		paths[name+"/by-update"] = "/instances?order=updated&" + filter
		paths[name+"/deep"] = "/instances?cursor=" + middle + "&" + filter
		paths[name+"/by-update/deep"] = "/instances?order=updated&cursor=" + deep + "&" + filter
	}
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				begun := time.Now()
				v.get("/console" + paths[name]).want(200)
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
}

// cursorOf returns a cursor of a list of the API. Reading all pages before it would take too long.
func cursorOf(list byte, fields ...[]byte) string {
	return base64.RawURLEncoding.EncodeToString(slices.Concat(append([][]byte{{list}}, fields...)...))
}

// BenchmarkFirstPaint tells how long after it is asked for the page of an instance with 100,000 transitions is painted.
func BenchmarkFirstPaint(b *testing.B) {
	s := newStand(b)
	id := s.longLived(b, 100_000)
	p := s.open(s.URL(), s.key("boss", everything, "boss"), "/instances/"+id.String())
	var took []float64
	for b.Loop() {
		p.Do(chromedp.Reload())
		const painted = `new Promise((done) => new PerformanceObserver((list) => done(list.getEntries()[0].startTime))
			.observe({type: 'paint', buffered: true}))`
		took = append(took, chromium.Eval[float64](p, painted))
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "p50-ms")
	b.ReportMetric(took[len(took)*95/100], "p95-ms")
}
