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

const nameOfFuzz = "TestGeneratedRequests"

// Requests follow or violate the document. There is no internal error, each answer is as the document declares, each served request is
// valid by the document, and the database stays consistent. PAWL_REQUESTS is their number.
func TestGeneratedRequests(t *testing.T) {
	requests := int64(2000)
	if testing.Short() {
		requests = 500
	}
	if text := os.Getenv("PAWL_REQUESTS"); text != "" {
		var err error
		requests, err = strconv.ParseInt(text, 10, 64)
		require.NoError(t, err, "PAWL_REQUESTS")
	}
	f := newFuzz(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	f.left.Store(requests)
	ctx, end := context.WithCancel(t.Context())
	var askers, courier sync.WaitGroup
	courier.Go(func() { f.deliver(ctx) })
	for n := range uint64(8) {
		askers.Go(func() { f.ask(rand.New(rand.NewPCG(seed, n))) })
	}
	askers.Wait()
	v, err := f.engine.Admin().Verify(t.Context(), "acme", uuid.Nil)
	assert.Truef(t, err == nil && len(v.Broken) == 0 && v.Entries > 0, "%+v, %v", v, err)
	tables.WantSound(t, f.pool)
	f.post("/v1/workflows/parcel/pack", uuid.NewString(), `{"to":"Graz"}`, "Authorization", "everybody").want(t, http.StatusCreated)
	end()
	courier.Wait()
	assert.GreaterOrEqual(t, 10*f.served.Load(), f.valid.Load(), "few of the valid requests are served")
}

// fuzz is a server on which every caller has all grants, and its document.
type fuzz struct {
	*server
	client        *http.Client
	document      []byte
	known         *knownValues
	left          atomic.Int64 // requests
	valid, served atomic.Int64 // valid requests, and those of them that were served
}

// notAsked are operations that are a defect on purpose, or would leave nothing to ask for.
func notAsked(operation string) bool {
	return strings.HasSuffix(operation, "/lose") || // panics
		operation == "PUT /v1/ops/paused/{workflow}" || strings.HasSuffix(operation, "/forget")
}

func newFuzz(t *testing.T) *fuzz {
	t.Helper()
	f := &fuzz{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}}
	t.Cleanup(f.client.CloseIdleConnections)
	keys := &lateKeys{}
	f.server = newServerOf(t, nil, []relay.Sink{{Name: "main", To: &shelf{}}}, withPost, func(c *api.Config) {
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

// ask sends requests until none are left. It is one of several goroutines.
func (f *fuzz) ask(random *rand.Rand) {
	m, err := newRequestMaker(f.document, random, f.known, notAsked)
	if err != nil {
		f.t.Error(err)
		return
	}
	for f.left.Add(-1) >= 0 && !f.t.Failed() {
		c := m.make()
		status, body, err := f.exchange(random, c)
		assert.Falsef(f.t, err != nil || status >= 500 && status != http.StatusServiceUnavailable, "%d %s, %v: %s", status, body, err, c)
		if len(c.defects) == 0 && status > 0 {
			f.valid.Add(1)
			if status < 300 {
				f.served.Add(1)
			}
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
