package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Go's http.Transport repeats a request that has an Idempotency-Key if a reused connection is lost without an answer, as the documents
// warn. The caller has sent it once, and Pawl receives it twice.
func TestGoTransportRetriesKeyedRequests(t *testing.T) {
	s := newServer(t)
	var sent, lose atomic.Int64
	lossy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			return
		}
		sent.Add(1)
		if lose.Add(-1) < 0 {
			s.api.ServeHTTP(w, r)
			return
		}
		s.api.ServeHTTP(httptest.NewRecorder(), r) // it is done, and its answer is lost
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			err = conn.Close()
		}
		assert.NoError(t, err)
	}))
	t.Cleanup(lossy.Close)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)

	pack := func(key string, once bool) (replayed string, err error) {
		t.Helper()
		warm, err := client.Get(lossy.URL) // so that there is a connection that was in use before
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, warm.Body)
		require.NoError(t, err)
		_ = warm.Body.Close()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, lossy.URL+"/v1/workflows/parcel/pack",
			strings.NewReader(`{"to":"Wien"}`))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key)
		if once {
			r.GetBody = nil
		}
		sent.Store(0)
		lose.Store(1)
		answer, err := client.Do(r)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return answer.Header.Get("Idempotent-Replayed"), err
	}
	if replayed, err := pack("k-1", false); err != nil || replayed != "true" || sent.Load() != 2 {
		t.Errorf("sent once: replayed %q, %v; Pawl was asked %d times", replayed, err, sent.Load())
	}
	if _, err := pack("k-2", true); err == nil || sent.Load() != 1 {
		t.Errorf("without GetBody: %v; Pawl was asked %d times, want 1 and the error", err, sent.Load())
	}
}
