package relay_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	upstream "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink/file"
	"github.com/pawlhq/pawl/outbox/sink/jetstream"
	"github.com/pawlhq/pawl/outbox/sink/natstest"
	"github.com/pawlhq/pawl/outbox/sink/webhook"
)

// arrived checks that all CloudEvents up to a position arrived, each instance's in order, ignoring
// repetitions. It returns the number of repetitions.
func arrived(t *testing.T, bodies [][]byte, head int64) (repeated int) {
	t.Helper()
	seen, last := map[string]bool{}, map[string]int64{}
	for _, body := range bodies {
		var e struct{ ID, Instance, Position string }
		require.NoError(t, json.Unmarshal(body, &e), body)
		if seen[e.ID] {
			repeated++
			continue
		}
		seen[e.ID] = true
		position, err := strconv.ParseInt(e.Position, 10, 64)
		require.NoError(t, err)
		assert.Truef(t, position >= last[e.Instance], "%s: %s came after position %d", e.Instance, e.ID, last[e.Instance])
		last[e.Instance] = position
	}
	assert.Len(t, seen, events(head), "events of arrived")
	return repeated
}

func TestJetStreamReceivesEveryEventOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := poolOf(t, url, nil)
	server := natstest.Start(t)
	start := func() *node {
		to, err := jetstream.New(jetstream.Config{URL: server.URL(), Timeout: time.Second})
		require.NoError(t, err)
		return startNode(t, url, quick("nats", to, func(s *relay.Sink) { s.Batch, s.Window, s.Retry.Max = 20, 200, 50*time.Millisecond }))
	}
	var head int64
	for round := range 6 {
		n := start()
		head = publish(t, pool, tenant, strings.Repeat("abcdefghijkl", 15), n)
		eventually(t, "some are delivered", func() bool { return cursor(t, pool, "nats", tenant) > head-150 })
		if round%2 == 1 {
			server.Down()
			head = publish(t, pool, tenant, "abcdef", n)
			require.NoError(t, server.Up())
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // cancels the calls
		n.Stop(ctx)
	}
	start()
	cursorReaches(t, pool, "nats", tenant, head)

	conn, err := nats.Connect(server.URL())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := upstream.New(conn)
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "PAWL")
	require.NoError(t, err)
	var bodies [][]byte
	for n := uint64(1); n <= stream.CachedInfo().State.LastSeq; n++ {
		m, err := stream.GetMsg(t.Context(), n)
		require.NoError(t, err)
		bodies = append(bodies, m.Data)
	}
	assert.Equal(t, 0, arrived(t, bodies, head), "in the stream twice")
}

func TestFileReceivesEveryEvent(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := poolOf(t, url, nil)
	path := filepath.Join(t.TempDir(), "events.ndjson")
	var head int64
	for range 4 {
		to, err := file.New(file.Config{Path: path})
		require.NoError(t, err)
		n := startNode(t, url, quick("file", to))
		head = publish(t, pool, tenant, strings.Repeat("abcdefgh", 50), n)
		cursorReaches(t, pool, "file", tenant, head)
		n.stop()
	}
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	var bodies [][]byte
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		bodies = append(bodies, append([]byte(nil), lines.Bytes()...))
	}
	assert.Equal(t, 0, arrived(t, bodies, head), "in the file twice")
}

// A webhook that fails, responds late or disconnects after processing receives every event, in
// order once repetitions are dropped by id.
func TestFailingWebhookReceivesEveryEvent(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	var mu sync.Mutex
	var bodies [][]byte
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client disconnected
		}
		mu.Lock()
		requests++
		n := requests
		if n%17 != 0 && n%23 != 0 {
			bodies = append(bodies, body)
		}
		mu.Unlock()
		switch {
		case n%17 == 0:
			http.Error(w, "not now", http.StatusInternalServerError)
		case n%23 == 0:
			http.Error(w, "down", http.StatusServiceUnavailable)
		case n%29 == 0: // processed, but too late
			<-r.Context().Done()
		case n%31 == 0: // processed, but without a response
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(server.Close)
	to, err := webhook.New(webhook.Config{URL: server.URL, Secrets: []signature.Secret{signature.NewSecret()}, PlainHTTP: true,
		Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Timeout: 100 * time.Millisecond})
	require.NoError(t, err)
	n := startNode(t, url, quick("hook", to, func(s *relay.Sink) { s.Batch, s.Calls, s.Retry.Attempts = 4, 8, 1_000_000 }))
	head := publish(t, n.pool, tenant, strings.Repeat("abcdefghijklmnop", 20), n)
	cursorReaches(t, n.pool, "hook", tenant, head)
	eventually(t, "nothing is deferred", func() bool { return number(t, n.pool, "SELECT count(*) FROM pawl.outbox_dead") == 0 })
	mu.Lock()
	defer mu.Unlock()
	assert.NotEqual(t, 0, arrived(t, bodies, head), "nothing was repeated: the receiver did not do what it should")
}
