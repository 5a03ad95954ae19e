package faults

import (
	"encoding/json"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
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

// moody is a receiver of webhooks that takes each event once and fails in every
// way: before it has processed an event, after it, and by saying nothing.
type moody struct {
	secret signature.Secret

	mu       sync.Mutex
	has      map[string]bool
	list     []delivered
	repeated int
	failed   map[string]int // by what was done to the sender
}

func newMoody() *moody {
	return &moody{secret: signature.NewSecret(), has: map[string]bool{}, failed: map[string]int{}}
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
	switch mood := rand.IntN(1000); {
	case mood < 20:
		m.fails("failed before", w, http.StatusInternalServerError)
		return
	case mood < 40:
		m.process(id, body)
		m.fails("failed after", w, http.StatusInternalServerError)
		return
	case mood < 50:
		m.process(id, body)
		m.fails("broke off after", w, 0)
		return
	case mood < 53:
		m.fails("stalled before", nil, 0)
		await.Pass("to stall is what is wrong with it", stall)
		m.process(id, body)
	case mood < 56:
		m.process(id, body)
		m.fails("stalled after", nil, 0)
		await.Pass("to stall is what is wrong with it", stall)
	case mood < 57:
		m.fails("overloaded", w, http.StatusServiceUnavailable)
		return
	default:
		m.process(id, body)
	}
	w.WriteHeader(http.StatusNoContent)
}

// process takes an event that it does not have.
func (m *moody) process(id string, body []byte) {
	var e struct {
		Instance uuid.UUID `json:"instance"`
		Version  int64     `json:"version"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		panic(err) // signed, and not an event
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

func (m *moody) fails(how string, w http.ResponseWriter, status int) {
	m.mu.Lock()
	m.failed[how]++
	m.mu.Unlock()
	switch {
	case w == nil: // later
	case status == 0:
		panic(http.ErrAbortHandler)
	default:
		w.WriteHeader(status)
	}
}

func (m *moody) arrived() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.list)
}

var moods = []string{"failed before", "failed after", "broke off after", "stalled before", "stalled after"}

// was reports whether it has been in every mood, and something came again.
func (m *moody) was() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.repeated > 0 && !slices.ContainsFunc(moods, func(how string) bool { return m.failed[how] == 0 })
}

// The receiver processes every event once, in each instance's order, because it
// remembers the ids.
func TestKilledRelay_Webhook(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	m := newMoody()
	server := httptest.NewUnstartedServer(m)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of what is done to it
	server.Start()
	t.Cleanup(server.Close)
	begun := time.Now()
	k := newKillings(t, "webhook", m.arrived, nodeWebhook+"="+server.URL, nodeSecret+"="+m.secret.Reveal())
	kills := k.run(m.was)
	took := time.Since(begun)
	server.CloseClientConnections()
	m.mu.Lock()
	defer m.mu.Unlock()
	k.wantAll(m.list)
	t.Logf("%d kills, %d of them in the middle, %d events in %.0fs; %d came again; %v",
		kills, k.busy, len(m.list), took.Seconds(), m.repeated, m.failed)
	assert.NotEqual(t, 0, m.repeated, "nothing came again: the test proves little")
	for _, how := range moods {
		assert.NotEqualf(t, 0, m.failed[how], "the receiver never %s", how)
	}
}
