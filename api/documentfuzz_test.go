package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/workflow"
)

// requestsMadeUp is what PAWL_REQUESTS says, or so many.
func requestsMadeUp(t *testing.T, n int64) int64 {
	text := os.Getenv("PAWL_REQUESTS")
	if text == "" {
		return n
	}
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err, "PAWL_REQUESTS")
	return n
}

const nameOfFuzz = "TestGeneratedRequests"

// Requests follow or violate the document. There is no internal error, each answer is as the document declares, each served request is
// valid by the document, and the database stays consistent.
func TestGeneratedRequests(t *testing.T) {
	f := newFuzz(t)
	left, seed, began := &atomic.Int64{}, uint64(time.Now().UnixNano()), time.Now()
	requests := int64(2000)
	if testing.Short() { // of so few, chance decides how many operations are served
		requests = 500
	}
	requests = requestsMadeUp(t, requests)
	left.Store(requests)
	ctx, end := context.WithCancel(t.Context())
	var askers, courier sync.WaitGroup
	courier.Go(func() { f.deliver(ctx) })
	for n := range uint64(8) {
		askers.Go(func() { f.ask(rand.New(rand.NewPCG(seed, n)), left) })
	}
	askers.Wait()
	t.Logf("seed %d: %v", seed, time.Since(began).Round(time.Millisecond))
	f.wantWhole()
	end()
	courier.Wait()
	if requests < 2000 {
		return
	}
	m, err := newRequestMaker(f.document, nil, nil, notAsked)
	require.NoError(t, err)
	var operations []string
	for _, o := range m.operations {
		operations = append(operations, o.name)
	}
	f.tally.wantDepth(t, operations)
}

// fuzz is a server on which every caller has all grants, and its document.
type fuzz struct {
	*server
	client   *http.Client
	document []byte
	known    *knownValues
	tally    tally
}

// notAsked are operations that are a defect on purpose, or would leave nothing to ask for.
func notAsked(operation string) bool {
	return strings.HasSuffix(operation, "/lose") || // panics
		operation == "PUT /v1/ops/paused/{workflow}" || strings.HasSuffix(operation, "/forget")
}

func newFuzz(t *testing.T) *fuzz {
	t.Helper()
	f := &fuzz{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}},
		tally: tally{answers: map[int]int{}, served: map[string]bool{}, refused: map[string]string{}}}
	t.Cleanup(f.client.CloseIdleConnections)
	keys := &lateKeys{}
	f.server = newServerWith(t, []relay.Sink{{Name: "main", To: &shelf{}}}, withPost, func(c *api.Config) {
		c.Keys, c.Logger = keys, slog.New(slog.DiscardHandler)
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
		})
		post := c.Inbox["post"]
		post.Tenant = "acme" // of everybody
		c.Inbox["post"] = post
		c.Identify = func(r *http.Request) (api.Caller, error) {
			if r.Header.Get("Authorization") == "" {
				return api.Caller{}, workflow.Errorf(workflow.Unauthorized, "nobody")
			}
			caller, err := everybody(r)
			if r.Header.Get("Authorization") != "everybody" {
				caller.Grants = auth.Grants{{Right: auth.Read}}
			}
			return caller, err
		}
	})
	keys.Verifier = apikey.NewVerifier(apikey.NewTable(f.pool, schema.For(schema.Default)),
		apikey.Config{Log: slog.New(slog.DiscardHandler)})
	f.vouched = keys.Good
	keys.Start()
	t.Cleanup(keys.Stop)
	var err error
	f.document, err = api.OpenAPI(f.engine.Read().Workflows())
	require.NoError(t, err)
	f.known = knownOfFuzz()
	for _, label := range []string{"L-1", "L-2"} {
		f.post("/v1/workflows/parcel/label", label, `{"to":"Graz","label":"`+label+`"}`, "Authorization", "everybody").want(t, http.StatusCreated)
	}
	return f
}

// knownOfFuzz is what is there from the beginning.
func knownOfFuzz() *knownValues {
	return &knownValues{byName: map[string][]any{
		"workflow": {"parcel", "delivery"}, "transition": {"pack", "label", "stamp", "send", "book", "deliver", "note"},
		"business_key": {"L-1", "L-2"}, "label": {"L-1", "L-2", "L-3"},
		"sink": {"main"}, "consumer": {"post"}, "can": {"read", "submit:parcel/stamp"},
		"grants": {"read:parcel#L-1", "stream:parcel", "submit:parcel/stamp", "read"},
		"tenant": {"acme"}, "actor": {"ann"}, "if_version": {1, 2, 3}, "version": {1, 2, 3}, "definition": {1},
		"payload": {json.RawMessage("{}"), json.RawMessage(`{"to":"Graz"}`)},
		"Prefer":  {"wait=0", "respond-async"}, "not_before": {"2020-01-01T00:00:00Z"}, "replay_for": {60, 3600}, "Pawl-Replay-For": {60},
		"If-Match": {"*"}, "scope": {"mine"}, "tombstone_for": {60, "forever"}, "Pawl-Tombstone-For": {"60", "forever"},
		"result": {json.RawMessage(`{"signed":"ann"}`)}, "seconds": {60}, "roles": {"clerk"}, "Last-Event-ID": {"0"}, "attr.to": {"Graz"},
		"attr.heavy":                       {"yes"},
		"^(start|now|0|[1-9][0-9]{0,18})$": {"start", "now", "0", "1", "7"},
	}}
}

// What is made up without a mistake is what the document allows.
func TestGeneratedRequests_Valid(t *testing.T) {
	w, err := parcel.Build()
	require.NoError(t, err)
	workflows := []*workflow.Workflow{w}
	document, err := api.OpenAPI(workflows)
	require.NoError(t, err)
	seed := uint64(time.Now().UnixNano())
	m, err := newRequestMaker(document, rand.New(rand.NewPCG(seed, 0)), knownOfFuzz(), notAsked)
	require.NoError(t, err)
	contract := contractOf(t, workflows)
	for range 500 {
		c := m.make()
		if len(c.defects) > 0 || strings.Contains(c.name, "{transition}") { // of which the narrower address says more
			continue
		}
		r, err := http.NewRequestWithContext(t.Context(), c.method, c.target(), nil)
		if err != nil {
			t.Errorf("%v: %s", err, c)
			continue
		}
		for _, h := range c.header {
			r.Header.Add(h[0], h[1])
		}
		assert.NoErrorf(t, contract.checkRequest(&exchange{pattern: c.name, request: r, sent: c.body}),
			"seed %d: %s", seed, c)
	}
}

// ask sends requests until none are left. It is one of several goroutines.
func (f *fuzz) ask(random *rand.Rand, left *atomic.Int64) {
	m, err := newRequestMaker(f.document, random, f.known, notAsked)
	if err != nil {
		f.t.Error(err)
		return
	}
	for left.Add(-1) >= 0 && !f.t.Failed() {
		c := m.make()
		status, body, err := f.exchange(random, c)
		switch {
		case err != nil:
			f.t.Errorf("%v: %s", err, c)
		case status >= 500 && status != http.StatusServiceUnavailable:
			f.t.Errorf("%d %s: %s", status, body, c)
		case status > 0:
			f.tally.add(c, status, body)
		}
	}
}

// exchange sends a call with one of the identities, and reads its answer. A server that closes the connection early gives no answer and no
// error.
func (f *fuzz) exchange(random *rand.Rand, c *madeRequest) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(f.t.Context(), await.Patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, c.method, f.url+c.target(), bytes.NewReader(c.body))
	if err != nil {
		return 0, nil, nil // it is none of HTTP
	}
	for _, h := range c.header {
		r.Header.Add(h[0], h[1])
	}
	sign(random, r)
	response, err := f.client.Do(r)
	if hungUp(err) || err != nil && len(c.body) > 256<<10 {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(response.Body); err == nil && response.StatusCode < 300 {
		f.known.learn(random, response.Header, body)
	}
	return response.StatusCode, body, err
}

// sign adds the sender's identity, mostly one with all grants, and what the document does not describe: repetitions, and signatures of
// messages.
func sign(random *rand.Rand, r *http.Request) {
	switch n := random.IntN(30); {
	case n > 1:
		r.Header.Set("Authorization", "everybody")
	case n > 0:
		r.Header.Set("Authorization", "a reader")
	}
	if r.Header.Get("Idempotency-Key") != "" && random.IntN(8) == 0 {
		r.Header.Set("Idempotency-Key", "again-"+strconv.Itoa(random.IntN(100)))
	}
	if strings.HasPrefix(r.URL.Path, "/v1/inbox/") && random.IntN(4) > 0 {
		r.Header.Set("Signature", "the post")
		r.Header.Set("Id", "m-"+strconv.Itoa(random.IntN(500)))
		switch random.IntN(4) {
		case 0:
			setBody(r, `{"type":"scanned","label":"L-1","price":2}`)
		case 1:
			setBody(r, `{"type":"announced","label":"L-`+strconv.Itoa(random.IntN(50))+`"}`)
		}
	}
}

// deliver ends the waiting attempts: with success, failure, or an unknown outcome.
func (f *fuzz) deliver(ctx context.Context) {
	for n := 0; ; n++ {
		select {
		case v := <-f.courier.visits:
			switch n % 4 {
			case 0:
				v.failed(errors.New("nobody is at home"))
			case 1:
				v.failed(workflow.Final(errors.New("the house is gone")))
			default:
				v.signed("ann")
			}
		case <-ctx.Done():
			return
		}
	}
}

// wantWhole holds what is in the database against itself.
func (f *fuzz) wantWhole() {
	f.t.Helper()
	v, err := f.engine.Admin().Verify(f.t.Context(), "acme", uuid.Nil)
	if err != nil || len(v.Broken) > 0 || v.Entries == 0 {
		f.t.Errorf("%+v, %v", v, err)
	}
	tables.WantSound(f.t, f.pool)
	// it still serves
	f.post("/v1/workflows/parcel/pack", uuid.NewString(), `{"to":"Graz"}`, "Authorization", "everybody").want(f.t, http.StatusCreated)
}

// tally counts what was asked, and how it was answered.
type tally struct {
	mu      sync.Mutex
	answers map[int]int
	whole   int               // what the document allows
	served  map[string]bool   // operations that were
	refused map[string]string // how the document's own was last refused, by operation
	good    int               // of the whole ones
}

func (n *tally) add(c *madeRequest, status int, body []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers[status]++
	if len(c.defects) == 0 {
		n.whole++
		n.refused[c.name] = string(body[:min(len(body), 400)])
	}
	if status < 300 {
		n.served[c.name] = true
		if len(c.defects) == 0 {
			n.good++
		}
	}
}

// wantDepth fails a test whose requests are refused at the door.
func (n *tally) wantDepth(t *testing.T, operations []string) {
	t.Helper()
	unserved := slices.DeleteFunc(operations, func(o string) bool { return n.served[o] })
	t.Logf("by status %v; of %d that the document allows %d were served; never served: %q", n.answers, n.whole, n.good, unserved)
	for _, o := range unserved {
		t.Logf("%s: %s", o, n.refused[o])
	}
	assert.True(t, 3*n.good >= n.whole && 2*len(unserved) <= len(operations), "the requests do not get far")
}
