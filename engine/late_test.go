package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/transitions"
)

// logRow is an event in few words.
type logRow struct {
	Position   int64
	Ordinal    int
	Instance   uuid.UUID
	Version    int64
	Transition string
}

func logRowOf(e *transitions.Event) logRow {
	return logRow{e.Position, e.Ordinal, e.Instance, e.Version, e.Transition}
}

// readTo follows a log to a position.
func readTo(t testing.TB, f transitions.Follower, head int64) (list []logRow) {
	t.Helper()
	for last := int64(0); last < head; {
		batch, err := f.Next(t.Context())
		require.NoError(t, err)
		for i := range batch.Events {
			list = append(list, logRowOf(&batch.Events[i].Event))
		}
		last = batch.Last
	}
	return list
}

// Two transactions stay open, one through SubmitTx and one of SQL alone, while more than a thousand others commit and are read. Readers
// miss none of them, and see none twice or out of order.
func TestAWriterThatCommitsLateIsMissedByNobody(t *testing.T) {
	t.Parallel()
	pool := database(t)
	to := &receiver{}
	e := newEngine(t, pool, sinks(relay.Sink{Name: "main", To: to}))
	submit(t, e, applied("L-go", 1000))
	submit(t, e, applied("L-sql", 1000))
	reader := e.Read().Follow("", 0)
	defer reader.Close()

	inGo := begin(t, pool)
	submitTx(t, e, inGo, on("pay", "L-go", "late 1", 10, ""))
	submitTx(t, e, inGo, on("pay", "L-go", "late 2", 10, ""))
	inSQL := begin(t, pool)
	require.NoError(t, errOf(inSQL.Exec(t.Context(), `
SELECT pawl.transition('sql', 'late', c.attempt, version => 1, state => 'open',
	data => '{"customer": "c-1", "region": "north", "owed": 990}',
	events => '[{"type": "loan.noticed", "payload": {}}]')
FROM pawl.claim('sql', 'late', sha256('x'), 'loan', 'pay', pawl.instance_id('loan', 'L-sql')) AS c`)))

	others := func(from, to int) {
		t.Helper()
		var list []transitions.Command
		for i := from; i < to; i++ {
			list = append(list, applied(fmt.Sprint("L-", i), 100))
		}
		for _, reply := range e.SubmitMany(t.Context(), list) {
			require.Truef(t, reply.Err == nil && !reply.Receipt.Refused(), "%+v", reply)
		}
	}
	others(0, 1000)
	read := readTo(t, reader, 1002)
	delivered(t, e, "main") // and so the sink is past them too, without anything of the late ones
	assert.Equal(t, 1002, len(to.got()), "events were delivered")
	commitTx(t, inSQL)
	others(1000, 1100)
	commitTx(t, inGo)
	submit(t, e, on("pay", "L-go", "after", 10, ""))
	submit(t, e, on("pay", "L-sql", "after", 10, ""))
	const head = 1002 + 1 + 100 + 2 + 2
	read = append(read, readTo(t, reader, head)...)

	position := int64(0)
	for _, r := range read {
		if r.Ordinal == 0 {
			position++
		}
		require.Equalf(t, position, r.Position, "after comes %+v", r)
	}
	assert.Len(t, read, head+1, "events were read")
	late := slices.DeleteFunc(slices.Clone(read), func(r logRow) bool { return r.Instance != loanID("L-go") && r.Instance != loanID("L-sql") })
	want := []logRow{
		{1, 0, loanID("L-go"), 1, "apply"}, {2, 0, loanID("L-sql"), 1, "apply"},
		{1003, 0, loanID("L-sql"), 2, "pay"}, {1003, 1, loanID("L-sql"), 2, "pay"},
		{1104, 0, loanID("L-go"), 2, "pay"}, {1105, 0, loanID("L-go"), 3, "pay"},
		{1106, 0, loanID("L-go"), 4, "pay"}, {1107, 0, loanID("L-sql"), 3, "pay"},
	}
	assert.Truef(t, slices.Equal(late, want), "the late ones were read as\n%v\nwant\n%v", late, want)

	eventually(t, "the sink has everything", func() bool { return len(to.got()) >= len(read) })
	newest := map[uuid.UUID]logRow{}
	var got []logRow
	for _, event := range to.got() {
		r := logRowOf(&event)
		before := newest[r.Instance]
		assert.Truef(t, r.Position >= before.Position && (r.Position != before.Position || r.Ordinal > before.Ordinal),
			"%+v was delivered after %+v", r, before)
		newest[r.Instance] = r
		got = append(got, r)
	}
	slices.SortFunc(got, func(a, b logRow) int {
		if a.Position != b.Position {
			return int(a.Position - b.Position)
		}
		return a.Ordinal - b.Ordinal
	})
	assert.Truef(t, slices.Equal(got, read), "%d events were delivered, and not those that were read", len(got))
}

// followTo reads a follower up to a position.
func followTo(t *testing.T, f transitions.Follower, last, position int64) (events []transitions.Logged) {
	t.Helper()
	for last < position {
		batch, err := f.Next(t.Context())
		require.NoError(t, err)
		events, last = append(events, batch.Events...), batch.Last
	}
	return events
}

// A follower gets the events of this node's commits from the pipeline. Reading them from the table gives the same bytes.
func TestEventsAreFollowedAsTheyAreStored(t *testing.T) {
	t.Parallel()
	pool := database(t)
	// All events are followed, none is read from the table.
	e := newEngine(t, pool, func(c *engine.Config) {
		c.Source = "/here"
		c.Now = func() time.Time { return time.Now().In(time.FixedZone("", 3600)) }
	})
	submit(t, e, applied("L-1", 5))
	live := e.Read().Follow(transitions.DefaultTenant, 0)
	defer live.Close()
	got := followTo(t, live, 0, 1)
	for _, c := range []transitions.Command{applied("L-2", 7), applied("L-<&>é\u2028", 7),
		on("pay", "L-1", "1", 2, ""), on("pay", "L-1", "2", 3, ""),
		{Workflow: "loan", Transition: "walk-in", Key: uuid.NewString(), Payload: []byte(`{"number":"9","amount":1.0}`)}} {
		submit(t, e, c)
	}
	for _, action := range []transitions.Action{transitions.Pause, transitions.Resume} {
		operate(t, e, transitions.Command{Key: string(action), Instance: loanID("L-2"), Actor: "op"},
			transitions.Operation{Action: action, Reason: "because"})
	}
	head, err := e.Read().Head(t.Context(), transitions.DefaultTenant)
	require.NoError(t, err)
	got = append(got, followTo(t, live, 1, head)...)

	late := newEngine(t, pool, func(c *engine.Config) { c.Source = "/here" }).Read().Follow(transitions.DefaultTenant, 0)
	defer late.Close()
	want := followTo(t, late, 0, head)
	require.Truef(t, len(got) == len(want) && len(want) >= int(head)+1,
		"%d events are followed, and %d are stored of %d transitions", len(got), len(want), head)
	for i := range want {
		g, w := &got[i], &want[i]
		assert.Truef(t, string(g.CloudEvent) == string(w.CloudEvent) && maps.Equal(g.Attributes, w.Attributes) && g.Position == w.Position,
			"event %s is followed as\n%s, %v\nand stored as\n%s, %v", w.ID(), g.CloudEvent, g.Attributes, w.CloudEvent, w.Attributes)
	}
}
