package faults

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/fines/replay"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
)

// Two programs share a database and get the same commands at the same time,
// among them creations of one business key with different keys. Each has one
// effect, and both callers get the same bytes.
func TestTwoProgramsGiveOneEffectAndTheSameBytes(t *testing.T) {
	t.Parallel()
	pool := database(t)
	first, second := startNode(t, pool), startNode(t, pool)
	ctx := underLoad(t)
	client := &http.Client{Timeout: patience}
	targets := []replay.Target{replay.HTTP("http://"+first.address, client), replay.HTTP("http://"+second.address, client)}
	const rounds, instances, each = 20, 8, 4
	for round := range rounds {
		var cs []transitions.Command
		for i := range instances {
			x := fmt.Sprintf("%d-%d", round, i)
			twin := opening(x)
			twin.Key = "another " + x
			cs = append(cs, opening(x), twin)
			for n := range each {
				cs = append(cs, onCounter(x, "add", fmt.Sprint(n), `{"by":1}`), onCounter(x, "add", fmt.Sprint("refused ", n), `{"by":-1}`))
			}
		}
		var replies [2][]transitions.Reply
		var both sync.WaitGroup
		ready := make(chan struct{})
		for i := range targets {
			both.Go(func() {
				<-ready
				replies[i] = targets[i].SubmitMany(ctx, cs)
			})
		}
		close(ready)
		both.Wait()
		for i, c := range cs {
			a, b := replies[0][i], replies[1][i]
			require.Truef(t, a.Err == nil && b.Err == nil, "%s %s: %v, %v", c.BusinessKey, c.Key, a.Err, b.Err)
			if a.Receipt.Replayed == b.Receipt.Replayed || a.Receipt.Status != b.Receipt.Status || string(a.Receipt.Body) != string(b.Receipt.Body) {
				t.Errorf("%s %s:\n%v %d %s\n%v %d %s", c.BusinessKey, c.Key, a.Receipt.Replayed, a.Receipt.Status, a.Receipt.Body,
					b.Receipt.Replayed, b.Receipt.Status, b.Receipt.Body)
			}
			assert.Falsef(t, c.Transition == "open" && strings.HasPrefix(c.Key, "another") == (a.Receipt.Status == 201),
				"%s: answered %d", c.Key, a.Receipt.Status)
		}
	}
	if n := number(t, pool, `SELECT count(*) FROM pawl.instance WHERE (data->>'n')::int <> $1 OR version <> $1 + 1`, each); n != 0 {
		t.Errorf("%d counters are wrong", n)
	}
	assert.Equal(t, int64(rounds*instances), number(t, pool, `SELECT count(*) FROM pawl.instance`), "counters")
	wantSound(t, start(t, pool), pool)
	first.end(t)
	second.end(t)
}

// Two programs play the log, and one of them is killed and started again, over
// and over.
func TestReplayEndsAsTheFoldSaysWhileANodeIsKilled(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	const every, enough = 1_000, 3 // events, kills
	pool := database(t)
	stays, dies := startNode(t, pool), startNode(t, pool)
	e := start(t, pool, withFines)
	// Another program may have the port of a node that was killed.
	var address atomic.Pointer[string]
	address.Store(&dies.address)
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, *address.Load())
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DialContext: dial}}
	due := make(chan struct{})
	var kills atomic.Int64
	var killing sync.WaitGroup
	killing.Go(func() {
		n := dies
		for range due {
			n.kill()
			var err error
			if n, err = launch(t, pool); err != nil {
				t.Error(err)
				continue
			}
			address.Store(&n.address)
			kills.Add(1)
		}
	})
	end := sync.OnceFunc(func() {
		close(due)
		killing.Wait()
	})
	defer end()
	next := int64(every)
	report := wantReplay(t, e, pool, replay.Config{
		Log:     someEvents(t, 10_000),
		Targets: against(replay.HTTP("http://"+stays.address, nil), replay.HTTP("http://"+dies.address, client)),
		Progress: func(events int64) {
			if events < next {
				return
			}
			next = events + every
			if kills.Load() < enough { // however long a start takes
				due <- struct{}{}
				return
			}
			select {
			case due <- struct{}{}:
			default:
			}
		},
	})
	end()
	t.Logf("%d kills, %d events submitted again", kills.Load(), report.Again)
	assert.Truef(t, kills.Load() >= enough && report.Again != 0,
		"%d kills and %d events submitted again: the test proves little", kills.Load(), report.Again)
}
