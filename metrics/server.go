package metrics

import (
	"bufio"
	"cmp"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler serves the metrics of collectors, the Go runtime and the process.
func Handler(cs ...prometheus.Collector) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.MustRegister(cs...)
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// Requests measures the requests of a handler. It is safe for concurrent use.
type Requests struct {
	total *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

var _ prometheus.Collector = (*Requests)(nil)

var (
	requestsTotal = counter("pawl_http_requests_total",
		"Answered requests, by route pattern and status.", "route", "code")
	requestsTook = histogram("pawl_http_request_duration_seconds",
		"Duration of requests until their answer, without event streams and WebSocket connections.", "route")
)

// buckets range from a replayed result to a request that waits for completion.
var buckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// NewRequests returns a Requests without measurements.
func NewRequests() *Requests {
	return &Requests{
		total: requestsTotal.vec(),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: requestsTook.Name, Help: requestsTook.Help, Buckets: buckets},
			requestsTook.Labels),
	}
}

// Describe implements prometheus.Collector. It sends nothing: a Collector describes all metrics of [Table].
func (m *Requests) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m *Requests) Collect(ch chan<- prometheus.Metric) {
	m.total.Collect(ch)
	m.took.Collect(ch)
}

// Observe measures the requests of next. The route is the matching pattern of the http.ServeMux in next, or "none".
func (m *Requests) Observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		s := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			route := cmp.Or(r.Pattern, "none")
			m.total.WithLabelValues(route, strconv.Itoa(s.status)).Inc()
			if !s.streamed() {
				m.took.WithLabelValues(route).Observe(time.Since(began).Seconds())
			}
		}()
		next.ServeHTTP(s, r)
	})
}

type statusWriter struct {
	http.ResponseWriter
	status  int
	written bool
}

// WriteHeader records the status. It ignores informational statuses except 101, which ends HTTP on the connection.
func (s *statusWriter) WriteHeader(status int) {
	if !s.written && (status >= 200 || status == http.StatusSwitchingProtocols) {
		s.status, s.written = status, true
	}
	s.ResponseWriter.WriteHeader(status)
}

// Write writes the body, with status 200 by default.
func (s *statusWriter) Write(b []byte) (int, error) {
	s.written = true
	return s.ResponseWriter.Write(b)
}

// Hijack takes over the connection for a WebSocket.
func (s *statusWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(s.ResponseWriter).Hijack()
	if err == nil {
		s.status, s.written = http.StatusSwitchingProtocols, true
	}
	return conn, buffered, err
}

// Unwrap allows http.ResponseController to access the server's writer.
func (s *statusWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// streamed reports whether the response is an unbounded stream.
func (s *statusWriter) streamed() bool {
	return s.status == http.StatusSwitchingProtocols || strings.HasPrefix(s.Header().Get("Content-Type"), "text/event-stream")
}

// ConnectionStats counts the connections of an HTTP server.
type ConnectionStats struct {
	Open    int   // currently
	Refused int64 // closed at once because their address had too many
	Evicted int64 // idle connections closed for new ones

	TLSEnds     time.Time // expiry of the certificate; zero without TLS
	TLSFailures int64     // failures to load new files of the certificate
}

var (
	connectionsOpen    = gauge("pawl_http_connections", "Open connections.")
	connectionsRefused = counter("pawl_http_connections_refused_total",
		"Connections that were refused because their address had too many.")
	connectionsEvicted = counter("pawl_http_connections_evicted_total", "Idle connections that were closed for new ones.")
	certificateEnd     = gauge("pawl_tls_certificate_end_timestamp_seconds", "Unix time at which the TLS certificate expires; 0 without TLS.")
	reloadFailures     = counter("pawl_tls_reload_failures_total",
		"Failed reloads of the TLS certificate, after which the old one stayed.")
)

// Connections returns a collector of a server's connections.
func Connections(stats func() ConnectionStats) prometheus.Collector {
	return collector(func(ch chan<- prometheus.Metric) {
		s := stats()
		send(ch, connectionsOpen, s.Open)
		send(ch, connectionsRefused, s.Refused)
		send(ch, connectionsEvicted, s.Evicted)
		end := int64(0)
		if !s.TLSEnds.IsZero() {
			end = s.TLSEnds.Unix()
		}
		send(ch, certificateEnd, end)
		send(ch, reloadFailures, s.TLSFailures)
	})
}

// MemoryStats counts the memory shared by the callers of a node.
type MemoryStats struct {
	Size, Held int64 // bytes
	Refused    int64 // requests since the start
}

var (
	memoryLimit   = gauge("pawl_http_memory_limit_bytes", "Memory limit of all requests and streams.")
	memoryHeld    = gauge("pawl_http_memory_held_bytes", "Memory that open requests and streams have reserved.")
	memoryRefused = counter("pawl_http_memory_refused_total",
		"Requests that were refused because a memory limit or a limit of open requests was reached.")
)

// Memory returns a collector of the memory shared by callers.
func Memory(stats func() MemoryStats) prometheus.Collector {
	return collector(func(ch chan<- prometheus.Metric) {
		s := stats()
		send(ch, memoryLimit, s.Size)
		send(ch, memoryHeld, s.Held)
		send(ch, memoryRefused, s.Refused)
	})
}

// Refusals counts rejected callers and exports the state of verification keys. It is safe for concurrent use.
type Refusals struct {
	Keys    func() TokenKeys // state of the identity provider's keys; nil without tokens; set before the first scrape
	APIKeys func() APIKeys   // state of the API keys; nil without API keys; set before the first scrape
	total   *prometheus.CounterVec
}

// TokenKeys is the state of an identity provider's keys.
type TokenKeys struct {
	Keys            int
	Reads, Failures int64
	Read            time.Time // last successful read
}

// APIKeys is the state of the API keys.
type APIKeys struct {
	Known                    int   // cached keys
	Lookups, Looks, Failures int64 // looked-up keys, polls for them and for changes, and failed polls
}

var _ prometheus.Collector = (*Refusals)(nil)

var (
	refusedTotal = counter("pawl_auth_refused_total",
		"Refused callers, by the problem of their credential, or `grant` for a missing grant.", "reason")
	authKeys    = gauge("pawl_auth_keys", "Keys of the identity provider in use.")
	keyReads    = counter("pawl_auth_key_reads_total", "Requests for the keys of the identity provider.")
	keyFailures = counter("pawl_auth_key_failures_total", "Failed requests for the keys of the identity provider.")
	keysRead    = gauge("pawl_auth_keys_read_seconds", "Unix time of the last successful read of the identity provider's keys.")

	apiKeysKnown    = gauge("pawl_auth_api_keys", "API keys cached by the node.")
	keyLookups      = counter("pawl_auth_api_key_lookups_total", "Lookups of API keys in the database that were not cached.")
	keyPolls        = counter("pawl_auth_api_key_looks_total", "Polls of the table of API keys.")
	keyPollFailures = counter("pawl_auth_api_key_look_failures_total", "Polls of the table of API keys that failed.")
)

// NewRefusals returns a Refusals without counts.
func NewRefusals() *Refusals { return &Refusals{total: refusedTotal.vec()} }

// Count counts a rejection.
func (m *Refusals) Count(reason string) { m.total.WithLabelValues(reason).Inc() }

// Describe implements prometheus.Collector. It sends nothing: a Collector describes all metrics of [Table].
func (m *Refusals) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m *Refusals) Collect(ch chan<- prometheus.Metric) {
	m.total.Collect(ch)
	if m.Keys != nil {
		now := m.Keys()
		send(ch, authKeys, now.Keys)
		send(ch, keyReads, now.Reads)
		send(ch, keyFailures, now.Failures)
		if !now.Read.IsZero() {
			send(ch, keysRead, now.Read.Unix())
		}
	}
	if m.APIKeys != nil {
		now := m.APIKeys()
		send(ch, apiKeysKnown, now.Known)
		send(ch, keyLookups, now.Lookups)
		send(ch, keyPolls, now.Looks)
		send(ch, keyPollFailures, now.Failures)
	}
}
