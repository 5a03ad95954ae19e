package metrics

import (
	"bufio"
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

// Metrics of Requests. A Collector does not export histograms.
var (
	requestsTotal = Metric{Name: "pawl_http_requests_total", Type: "counter", Labels: []string{"route", "code"},
		Help: "Requests that were answered, by the pattern of their address and the status of the answer."}
	requestsTook = Metric{Name: "pawl_http_request_duration_seconds", Type: "histogram", Labels: []string{"route"},
		Help: "How long requests took to be answered, without event streams and WebSocket connections."}
)

// buckets range from a replayed result to a request that waits for completion.
var buckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// NewRequests returns a Requests without measurements.
func NewRequests() *Requests {
	return &Requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{Name: requestsTotal.Name, Help: requestsTotal.Help}, requestsTotal.Labels),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: requestsTook.Name, Help: requestsTook.Help, Buckets: buckets},
			requestsTook.Labels),
	}
}

// Describe implements prometheus.Collector.
func (m *Requests) Describe(ch chan<- *prometheus.Desc) {
	m.total.Describe(ch)
	m.took.Describe(ch)
}

// Collect implements prometheus.Collector.
func (m *Requests) Collect(ch chan<- prometheus.Metric) {
	m.total.Collect(ch)
	m.took.Collect(ch)
}

// Observe measures the requests of next. The route is the matching pattern of the http.ServeMux in
// next, or "none".
func (m *Requests) Observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		s := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			route := r.Pattern
			if route == "" {
				route = "none"
			}
			m.total.WithLabelValues(route, strconv.Itoa(s.status)).Inc()
			if !s.streamed() {
				m.took.WithLabelValues(route).Observe(time.Since(began).Seconds())
			}
		}()
		next.ServeHTTP(s, r)
	})
}

// statusWriter records the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status  int
	written bool
}

// WriteHeader records the status. It ignores informational statuses except 101, which ends HTTP on
// the connection.
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
