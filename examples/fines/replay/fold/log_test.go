package fold_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/examples/fines/replay/eventlog"
	"github.com/pawlhq/pawl/examples/fines/replay/fold"
)

// comparison plays a log through the workflow, and compares each case with the fold.
type comparison struct {
	t      testing.TB
	player *player
	trace  hash.Hash // of the workflow
	limit  int       // of events, 0 for none
	totals totals
}

// totals sums up a log.
type totals struct {
	cases, events, accepted int
	refused                 map[string]int     // events by reason
	ends                    map[fold.State]int // cases by their last state
}

var errEnough = errors.New("enough events")

// compare plays a log, and returns the fold's digest.
func compare(t testing.TB, log io.Reader, limit int) (digest string, _ totals) {
	c := &comparison{t: t, player: newPlayer(t), trace: sha256.New(), limit: limit,
		totals: totals{refused: map[string]int{}, ends: map[fold.State]int{}}}
	digest, err := fold.Run(log, c.each)
	require.False(t, err != nil && !errors.Is(err, errEnough), err)
	assert.Equal(t, digest, hex.EncodeToString(c.trace.Sum(nil)), "the workflow's trace has the digest, the fold's")
	return digest, c.totals
}

// each compares one case; it is what the fold calls.
func (c *comparison) each(want fold.Case) error {
	c.player.fine = nil
	for i, row := range want.Rows {
		o := c.player.event(c.t, entry{row, i + 1})
		if o != want.Outcomes[i] {
			c.t.Errorf("case %s, event %d:\n got %+v\nwant %+v", want.ID, i+1, o, want.Outcomes[i])
		}
		if o.Reason != "" {
			c.totals.refused[o.Reason]++
		} else {
			c.totals.accepted++
		}
		c.trace.Write(o.AppendLine(nil)) // a hash never fails
	}
	c.compareEnd(want)
	c.totals.cases++
	c.totals.ends[want.State]++
	if c.totals.events += len(want.Rows); c.limit > 0 && c.totals.events >= c.limit {
		return errEnough
	}
	return nil
}

func (c *comparison) compareEnd(want fold.Case) {
	if c.player.state() != want.State {
		c.t.Errorf("case %s ends %s, want %s", want.ID, c.player.state(), want.State)
	}
	if c.player.fine == nil {
		return
	}
	if c.player.fine.Version != want.Version {
		c.t.Errorf("case %s ends at version %d, want %d", want.ID, c.player.fine.Version, want.Version)
	}
	var f fines.Fine
	if err := json.Unmarshal(c.player.fine.Data, &f); err != nil {
		c.t.Fatal(err)
	}
	got := [4]int64{f.Amount, f.Raised, f.Expenses, f.Paid}
	if sums := [4]int64{want.Amount, want.Raised, want.Expenses, want.Paid}; got != sums {
		c.t.Errorf("case %s ends with the sums %v, want %v", want.ID, got, sums)
	}
}

// compareAll plays a whole log.
func compareAll(t testing.TB, log io.Reader) totals {
	_, totals := compare(t, log, 0)
	return totals
}

// The real log: every event of every case ends as the independent fold says, and
// as a second implementation, in another language, says.
func TestLogEndsAsTheFoldSays(t *testing.T) {
	if os.Getenv("PAWL_DATA") == "" {
		t.Skip("PAWL_DATA is not set: it names the folder of road_traffic_fines.csv.gz")
	}
	f, err := os.Open(filepath.Join(os.Getenv("PAWL_DATA"), "road_traffic_fines.csv.gz"))
	if err != nil {
		t.Skipf("PAWL_DATA has no log: %v", err)
	}
	defer func() {
		assert.NoError(t, f.Close())
	}()
	log, err := gzip.NewReader(f)
	require.NoError(t, err)
	if testing.Short() {
		compare(t, log, 5_000)
		return
	}
	digest, totals := compare(t, log, 0)
	assert.Equal(t, fold.LogDigest, digest, "the digest")
	checkTotals(t, totals)
}

// checkTotals knows the log.
func checkTotals(t *testing.T, got totals) {
	want := totals{
		cases: 150_370, events: 561_470, accepted: 559_396,
		refused: map[string]int{
			fold.IllegalTransition: 2_052, fold.InvalidPayload: 3,
			"the raised sum is not above the fine":                      18,
			"there is no enforceable title: neither raised nor ordered": 1,
		},
		ends: map[fold.State]int{
			fold.Appealed: 8, fold.BeforeJudge: 187, fold.Collection: 58_956, fold.Dismissed: 2_574, fold.Forwarded: 1_164,
			fold.Issued: 56, fold.OrderServed: 345, fold.Ordered: 83, fold.Paid: 62_962, fold.Penalised: 3_890, fold.Sent: 20_145,
		},
	}
	assert.Equal(t, want, got)
}

// A made-up log: the same, wherever the test runs. It has to be worth it, so
// each kind of refusal and each state must occur.
func TestGeneratedLogEndsAsTheFoldSays(t *testing.T) {
	const n = 5_000
	totals := compareAll(t, eventlog.Generate(1, n))
	assert.Equal(t, n, totals.cases, "cases")
	for _, reason := range []string{fold.IllegalTransition, fold.InvalidPayload, "the raised sum is not above the fine"} {
		assert.NotEqualf(t, 0, totals.refused[reason], "no event of the generated log is refused because of %s", reason)
	}
	ends := slices.Sorted(maps.Keys(totals.ends))
	for _, state := range []fold.State{fold.Paid, fold.Dismissed, fold.Collection, fold.Sent, fold.Forwarded, fold.OrderServed,
		fold.BeforeJudge} {
		assert.Contains(t, ends, state, "no case of the generated log ends")
	}
}
