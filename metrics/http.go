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

// Handler serves what collectors give, and the numbers of the Go runtime and the
// process.
func Handler(cs ...prometheus.Collector) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.MustRegister(cs...)
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// Requests measures the requests that a handler serves. It is safe for concurrent
// use.
type Requests struct {
	total *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

var _ prometheus.Collector = (*Requests)(nil)

// The metrics of Requests. A histogram is not one of those that a Collector gives.
var (
	requestsTotal = Metric{Name: "pawl_http_requests_total", Type: "counter", Labels: []string{"route", "code"},
		Help: "Requests that were answered, by the pattern of their address and the status of the answer."}
	requestsTook = Metric{Name: "pawl_http_request_duration_seconds", Type: "histogram", Labels: []string{"route"},
		Help: "How long requests took to be answered, without event streams and WebSocket connections."}
)

// buckets reach from an answer of a cached key to one that was waited for.
var buckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// NewRequests begins to measure.
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

// Observe measures what next serves. The route is the pattern of the http.ServeMux
// in next that took the request, "none" when none did.
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

// statusWriter sees the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status  int
	written bool
}

// WriteHeader notes the status. Those below 200 come before the answer, but for
// 101, after which the connection speaks another protocol.
func (s *statusWriter) WriteHeader(status int) {
	if !s.written && (status >= 200 || status == http.StatusSwitchingProtocols) {
		s.status, s.written = status, true
	}
	s.ResponseWriter.WriteHeader(status)
}

// Write is an answer with the status 200 unless there was one.
func (s *statusWriter) Write(b []byte) (int, error) {
	s.written = true
	return s.ResponseWriter.Write(b)
}

// Hijack hands the connection over, to be a WebSocket's.
func (s *statusWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(s.ResponseWriter).Hijack()
	if err == nil {
		s.status, s.written = http.StatusSwitchingProtocols, true
	}
	return conn, buffered, err
}

// Unwrap lets http.ResponseController reach what the server gave.
func (s *statusWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// streamed reports whether the answer goes on for as long as its reader likes.
func (s *statusWriter) streamed() bool {
	return s.status == http.StatusSwitchingProtocols || strings.HasPrefix(s.Header().Get("Content-Type"), "text/event-stream")
}
