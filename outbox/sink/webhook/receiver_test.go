package webhook_test

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/outbox/sink/sinktest"
	"github.com/pawlhq/pawl/outbox/sink/webhook"
)

// loopback is the address of test receivers.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

// receiver is a TLS endpoint that stores signed messages and remembers ids.
type receiver struct {
	secret  signature.Secret
	limit   int64
	http2   bool
	server  *httptest.Server
	address string

	mu       sync.Mutex
	has      map[string]bool
	messages []sinktest.Message
	stalled  chan struct{} // closed by resume; nil: not stalled
}

func newReceiver(t *testing.T, limit int64, http2 bool) *receiver {
	r := &receiver{secret: signature.NewSecret(), limit: limit, http2: http2, address: "127.0.0.1:0", has: make(map[string]bool)}
	r.up(t)
	t.Cleanup(func() { r.server.Close() })
	return r
}

func (r *receiver) up(t *testing.T) {
	listener, err := net.Listen("tcp", r.address)
	require.NoError(t, err)
	r.address = listener.Addr().String()
	r.server = httptest.NewUnstartedServer(r)
	r.server.Listener.Close()
	r.server.Listener = listener
	r.server.EnableHTTP2 = r.http2
	r.server.Config.ErrorLog = log.New(io.Discard, "", 0) // the tests cause errors
	r.server.StartTLS()
}

func (r *receiver) down(*testing.T) { r.server.Close() }

func (r *receiver) stall(*testing.T) (resume func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stalled := make(chan struct{})
	r.stalled = stalled
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.stalled = nil
		close(stalled)
	})
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, r.limit))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	id, err := signature.Verify([]signature.Secret{r.secret}, request.Header, body, time.Now(), signature.Tolerance)
	if err != nil || request.ProtoAtLeast(2, 0) != r.http2 || request.Header.Get("Content-Type") != sink.ContentType ||
		request.Method != http.MethodPost {
		http.Error(w, "not for me", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	if !r.has[id] {
		r.has[id] = true
		r.messages = append(r.messages, sinktest.Message{ID: id, Body: body})
	}
	stalled := r.stalled
	r.mu.Unlock()
	if stalled != nil {
		select {
		case <-stalled:
		case <-request.Context().Done():
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) received(*testing.T) []sinktest.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]sinktest.Message(nil), r.messages...)
}

// trust returns a client configuration with the receivers' certificate.
func (r *receiver) trust() *tls.Config {
	return r.server.Client().Transport.(*http.Transport).TLSClientConfig
}

func open(t *testing.T, c webhook.Config) *webhook.Sink {
	t.Helper()
	s, err := webhook.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close(t.Context()) })
	return s
}

func TestWebhookConforms(t *testing.T) {
	const limit = 256 << 10
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			sinktest.Run(t, func(t *testing.T) sinktest.Fixture {
				r := newReceiver(t, limit, http2)
				return sinktest.Fixture{
					Sink: open(t, webhook.Config{
						URL: r.server.URL + "/hook?token=x", Secrets: []signature.Secret{r.secret}, Private: loopback, TLS: r.trust(),
					}),
					Received: r.received, Dedupes: true, Limit: limit, Down: r.down, Up: r.up, Stall: r.stall,
				}
			})
		})
	}
}
