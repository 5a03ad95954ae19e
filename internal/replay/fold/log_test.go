package fold_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/internal/replay/eventlog"
	"github.com/pawlhq/pawl/internal/replay/fold"
)

// comparison plays a log through the workflow, case by case beside the fold.
type comparison struct {
	t      testing.TB
	player *player
	next   func() (eventlog.Case, error, bool)
	stop   func()
	trace  hash.Hash // of the workflow
	events int
	limit  int // of events, 0 for none
}

var errEnough = errors.New("enough events")

func compare(t testing.TB, cases eventlog.Cases) *comparison {
	c := &comparison{t: t, player: newPlayer(t), trace: sha256.New()}
	c.next, c.stop = iter.Pull2(cases)
	return c
}

// each compares one case; it is what the fold calls.
func (c *comparison) each(want fold.Case) error {
	got, err, ok := c.next()
	if err != nil || !ok {
		c.t.Fatalf("the fold has case %s, the reader %v", want.ID, err)
	}
	if got.ID != want.ID || len(got.Events) != len(want.Outcomes) {
		c.t.Fatalf("the fold has case %s with %d events, the reader %s with %d", want.ID, len(want.Outcomes), got.ID, len(got.Events))
	}
	c.player.fine = nil
	for i, e := range got.Events {
		o := c.player.event(c.t, e)
		if o != want.Outcomes[i] {
			c.t.Errorf("case %s, event %d:\n got %+v\nwant %+v", want.ID, i+1, o, want.Outcomes[i])
		}
		c.trace.Write(o.AppendLine(nil)) // a hash never fails
	}
	c.compareEnd(want)
	if c.events += len(got.Events); c.limit > 0 && c.events >= c.limit {
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

func (c *comparison) digest() string {
	return hex.EncodeToString(c.trace.Sum(nil))
}

// compareAll plays cases that can be ranged over twice, and returns what the
// fold counts.
func compareAll(t testing.TB, cases eventlog.Cases) fold.Totals {
	var log bytes.Buffer
	if err := eventlog.Write(&log, cases); err != nil {
		t.Fatal(err)
	}
	c := compare(t, cases)
	defer c.stop()
	totals, err := fold.Run(&log, c.each)
	if err != nil {
		t.Fatal(err)
	}
	if c.digest() != totals.Digest {
		t.Errorf("the trace has the digest %s, the fold's %s", c.digest(), totals.Digest)
	}
	return totals
}

// The real log: every event of every case ends as the independent fold says.
func TestLogEndsAsTheFoldSays(t *testing.T) {
	path := filepath.Join(os.Getenv("PAWL_DATA"), "road_traffic_fines.csv.gz")
	if os.Getenv("PAWL_DATA") == "" {
		t.Skip("PAWL_DATA is not set: it names the folder of road_traffic_fines.csv.gz")
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("PAWL_DATA has no log: %v", err)
	}
	c := compare(t, eventlog.File(path))
	defer c.stop()
	// The race detector has nothing to find in one goroutine, and is slow at it.
	if testing.Short() || raceDetector {
		c.limit = 20_000
	}
	totals, err := fold.File(path, c.each)
	if c.limit > 0 {
		if !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := c.digest(); got != fold.LogDigest {
		t.Errorf("the workflow's trace has the digest %s, want %s", got, fold.LogDigest)
	}
	checkTotals(t, totals)
}

// checkTotals knows the log.
func checkTotals(t *testing.T, totals fold.Totals) {
	want := fold.Totals{
		Cases: 150_370, Events: 561_470, Accepted: 559_396, Digest: fold.LogDigest,
		Refused: map[string]int{
			fold.IllegalTransition: 2_052, fold.InvalidPayload: 3,
			"the raised sum is not above the fine":                      18,
			"there is no enforceable title: neither raised nor ordered": 1,
		},
		Ends: map[fold.State]int{
			fold.Appealed: 8, fold.BeforeJudge: 187, fold.Collection: 58_956, fold.Dismissed: 2_574, fold.Forwarded: 1_164,
			fold.Issued: 56, fold.OrderServed: 345, fold.Ordered: 83, fold.Paid: 62_962, fold.Penalised: 3_890, fold.Sent: 20_145,
		},
	}
	if totals.Cases != want.Cases || totals.Events != want.Events || totals.Accepted != want.Accepted || totals.Digest != want.Digest ||
		!maps.Equal(totals.Refused, want.Refused) || !maps.Equal(totals.Ends, want.Ends) {
		t.Errorf("got  %+v\nwant %+v", totals, want)
	}
}

// A made-up log: the same, wherever the test runs. It has to be worth it, so
// each kind of refusal and each state must occur.
func TestGeneratedLogEndsAsTheFoldSays(t *testing.T) {
	n := 5_000
	if testing.Short() {
		n = 1_000
	}
	totals := compareAll(t, eventlog.Generate(1, n))
	if totals.Cases != n {
		t.Errorf("%d cases, want %d", totals.Cases, n)
	}
	if testing.Short() {
		return
	}
	for _, reason := range []string{fold.IllegalTransition, fold.InvalidPayload, "the raised sum is not above the fine"} {
		if totals.Refused[reason] == 0 {
			t.Errorf("no event of the generated log is refused because of %s", reason)
		}
	}
	ends := slices.Sorted(maps.Keys(totals.Ends))
	for _, state := range []fold.State{fold.Paid, fold.Dismissed, fold.Collection, fold.Sent, fold.Forwarded, fold.OrderServed,
		fold.BeforeJudge} {
		if !slices.Contains(ends, state) {
			t.Errorf("no case of the generated log ends %s", state)
		}
	}
}
