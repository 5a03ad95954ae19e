package webhook_test

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/outbox/sink/webhook"
	"github.com/pawlhq/pawl/transitions"
)

var secrets = []signature.Secret{signature.NewSecret()}

// serve starts an endpoint without TLS.
func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// deliver makes one attempt for one event.
func deliver(t *testing.T, c webhook.Config) *sink.Failure {
	t.Helper()
	c.Secrets, c.PlainHTTP = secrets, true
	failures := open(t, c).Deliver(t.Context(), event())
	if failures == nil {
		return nil
	}
	return failures[0]
}

// traceparent is the trace context of the delivery.
const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func event() []transitions.Logged {
	e := transitions.Event{Tenant: "acme", Position: 7, Type: "order.place", Instance: uuid.New(), Payload: []byte(`{}`),
		Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-aaaaaaaaaaaaaaaa-01"}
	return []transitions.Logged{{Event: e, CloudEvent: e.AppendCloudEvent(nil), Delivery: traceparent + " congo=t61"}}
}

func TestRequestIsASignedCloudEvent(t *testing.T) {
	var got http.Header
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	header := http.Header{"Authorization": {"Bearer x"}, "Webhook-Id": {"mine"}, "Content-Type": {"text/plain"}}
	require.Nil(t, deliver(t, webhook.Config{URL: server.URL, Private: loopback, Header: header}))
	for name, want := range map[string]string{
		"Content-Type": "application/cloudevents+json", "Webhook-Id": "acme:7-0", "Authorization": "Bearer x", "User-Agent": "Pawl",
		"Traceparent": traceparent, "Tracestate": "congo=t61",
	} {
		assert.Equal(t, want, got.Get(name), name)
	}
}

func TestFailureHasMessageAndRetryAfter(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "90")
		http.Error(w, "please\x00 \x1b[31mwait", http.StatusTooManyRequests)
	})
	f := deliver(t, webhook.Config{URL: server.URL + "/hook?token=s3cret", Private: loopback})
	require.Truef(t, f != nil && f.Kind == sink.Unavailable && f.RetryAfter == 90*time.Second, "failure: %+v", f)
	assert.Contains(t, f.Message, "responded 429 Too Many Requests: please\uFFFD \uFFFD[31mwait", "message lacks")
	assert.NotContainsf(t, f.Error(), "s3cret", "the failure shows the token: %v", f)
}

func TestRedirectionIsNotFollowed(t *testing.T) {
	var reached atomic.Bool
	target := serve(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	for _, status := range []int{http.StatusMovedPermanently, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect} {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target.URL+"/elsewhere?token=s3cret", status)
		})
		f := deliver(t, webhook.Config{URL: server.URL, Private: loopback})
		assert.Truef(t, f != nil && f.Kind == sink.Unavailable && strings.Contains(f.Message, "redirection to "+target.URL),
			"%d: %v", status, f)
	}
	assert.False(t, reached.Load(), "a redirection was followed")
}

// A public name that resolves to a private address is rejected.
func TestPrivateAddressMustBeListed(t *testing.T) {
	var reached atomic.Bool
	server := serve(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	port := server.Listener.Addr().(*net.TCPAddr).Port
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		c := webhook.Config{URL: fmt.Sprintf("http://%s:%d/hook?token=s3cret", host, port)}
		f := deliver(t, c)
		assert.Truef(t, f != nil && f.Kind == sink.Unavailable && strings.Contains(f.Message, "neither a public address"),
			"%s: %v", host, f)
		c.Secrets, c.PlainHTTP = secrets, true
		assert.Errorf(t, open(t, c).Check(t.Context()), "%s is checked as reachable", host)
	}
	assert.False(t, reached.Load(), "a private address was called")
}

func TestEnvironmentProxyIsIgnored(t *testing.T) {
	var asked atomic.Bool
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { asked.Store(true) })
	t.Setenv("HTTP_PROXY", proxy.URL)
	f := deliver(t, webhook.Config{URL: "http://192.0.2.1/hook", Private: loopback})
	assert.Truef(t, f != nil && f.Kind == sink.Unavailable, "failure: %v", f)
	assert.False(t, asked.Load(), "the proxy was asked")
}

func TestTimeoutEndsSlowRequest(t *testing.T) {
	release := make(chan struct{})
	var slow atomic.Bool
	server := serve(t, func(http.ResponseWriter, *http.Request) {
		if slow.Load() {
			<-release
		}
	})
	defer close(release)
	s := open(t, webhook.Config{URL: server.URL, Secrets: secrets, PlainHTTP: true, Private: loopback, Timeout: 200 * time.Millisecond})
	for end := time.Now().Add(time.Minute); s.Deliver(t.Context(), event()) != nil; { // opens a connection
		require.False(t, time.Now().After(end), "it never answers in time")
	}
	slow.Store(true)
	f := s.Deliver(t.Context(), event())[0]
	assert.Truef(t, f != nil && f.Kind == sink.Temporary && strings.Contains(f.Message, "did not respond within 200ms"),
		"failure: %v", f)
}

func TestEndlessResponseIsNotRead(t *testing.T) {
	for status, want := range map[int]sink.Kind{http.StatusOK: "", http.StatusBadRequest: sink.Permanent} {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 32<<10)); err != nil {
					return
				}
			}
		})
		f := deliver(t, webhook.Config{URL: server.URL, Private: loopback, Timeout: time.Minute})
		assert.Truef(t, (want != "" || f == nil) && (want == "" || f != nil && f.Kind == want),
			"%d with an endless body: %v, want %q", status, f, want)
	}
}

func TestLostConnectionIsTemporary(t *testing.T) {
	server := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	f := deliver(t, webhook.Config{URL: server.URL, Private: loopback})
	assert.Truef(t, f != nil && f.Kind == sink.Temporary, "failure: %v", f)
}

func TestConfigReportsAllErrors(t *testing.T) {
	_, err := webhook.New(webhook.Config{URL: "http://user:s3cret@example.org/", Timeout: -1})
	for _, want := range []string{"no TLS", "contains a user", "secret is missing", "must not be negative"} {
		assert.ErrorContains(t, err, want, "lacks")
	}
	for _, url := range []string{"", "https://", "ftp://example.org", "https://exa mple.org/s3cret", "example.org/hook"} {
		_, err := webhook.New(webhook.Config{URL: url, Secrets: secrets, PlainHTTP: true})
		assert.Truef(t, err != nil && !strings.Contains(err.Error(), "s3cret"), "%q: %v", url, err)
	}
}

func TestSinkHidesSecret(t *testing.T) {
	secret := signature.NewSecret()
	c := webhook.Config{URL: "https://example.org", Secrets: []signature.Secret{secret}}
	key := strings.TrimPrefix(secret.Reveal(), "whsec_")
	raw, err := base64.StdEncoding.DecodeString(key)
	require.NoError(t, err)
	for _, format := range []string{"%v", "%+v", "%#v"} {
		for _, value := range []any{c, open(t, c)} {
			shown := fmt.Sprintf(format, value)
			for _, form := range []string{key, strings.Trim(fmt.Sprint(raw), "[]"), fmt.Sprintf("%x", raw)} {
				assert.NotContainsf(t, shown, form, "printed with %s as", format)
			}
		}
	}
}
