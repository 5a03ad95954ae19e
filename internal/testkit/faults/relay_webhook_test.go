package faults

import (
	"encoding/json"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// stall is how long a receiver that stalls keeps a request, and twice as long as a
// node waits for it.
const stall = 400 * time.Millisecond

// moody is a receiver of webhooks that processes each event once and fails in every way: before it, after it, and by not responding.
type moody struct {
	secret signature.Secret

	mu       sync.Mutex
	has      map[string]bool
	list     []delivered
	repeated int
	failed   map[string]int // by mood
}

// moods are the ways to fail, with their frequency in 1000.
var moods = []struct {
	name          string
	frequency     int
	before, after bool          // whether the event is processed before, or after, the failure
	stall         time.Duration // then the request succeeds
	status        int           // 0: the connection is closed
}{
	{name: "failed before", frequency: 20, status: http.StatusInternalServerError},
	{name: "failed after", frequency: 20, before: true, status: http.StatusInternalServerError},
	{name: "broke off after", frequency: 10, before: true},
	{name: "stalled before", frequency: 3, after: true, stall: stall, status: http.StatusNoContent},
	{name: "stalled after", frequency: 3, before: true, stall: stall, status: http.StatusNoContent},
	{name: "overloaded", frequency: 1, status: http.StatusServiceUnavailable},
	{name: "", frequency: 1000, before: true, status: http.StatusNoContent},
}

func (m *moody) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed
	}
	id, err := signature.Verify([]signature.Secret{m.secret}, r.Header, body, time.Now(), signature.Tolerance)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	i, dice := 0, rand.IntN(1000)
	for ; dice >= moods[i].frequency; i++ {
		dice -= moods[i].frequency
	}
	mood := moods[i]
	m.mu.Lock()
	m.failed[mood.name]++
	m.mu.Unlock()
	if mood.before {
		m.process(id, body)
	}
	if mood.stall > 0 {
		await.Pass("the receiver stalls", mood.stall)
	}
	if mood.after {
		m.process(id, body)
	}
	if mood.status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(mood.status)
}

// process adds an event unless it was processed before.
func (m *moody) process(id string, body []byte) {
	var e struct {
		Instance uuid.UUID `json:"instance"`
		Version  int64     `json:"version"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		panic(err) // signed, but not an event
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.has[id] {
		m.repeated++
		return
	}
	m.has[id] = true
	m.list = append(m.list, delivered{id, e.Instance, e.Version})
}

func (m *moody) arrived() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.list)
}

// failedInAllWays reports whether every mood but "overloaded" occurred and an event was repeated.
func (m *moody) failedInAllWays() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, mood := range moods {
		if m.failed[mood.name] == 0 && mood.frequency > 1 {
			return false
		}
	}
	return m.repeated > 0
}

// The receiver processes every event once, in each instance's order, because it
// remembers the ids.
func TestKilledRelay_Webhook(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	m := &moody{secret: signature.NewSecret(), has: map[string]bool{}, failed: map[string]int{}}
	server := httptest.NewUnstartedServer(m)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of what is done to it
	server.Start()
	t.Cleanup(server.Close)
	begun := time.Now()
	k := newKillings(t, "webhook", m.arrived, nodeWebhook+"="+server.URL, nodeSecret+"="+m.secret.Reveal())
	kills := k.run(m.failedInAllWays)
	took := time.Since(begun)
	server.CloseClientConnections()
	assert.True(t, m.failedInAllWays(), "the test proves little")
	k.wantAll(m.list)
	t.Logf("%d kills, %d of them in the middle, %d events in %.0fs; %d came again; %v",
		kills, k.busy, len(m.list), took.Seconds(), m.repeated, m.failed)
}
