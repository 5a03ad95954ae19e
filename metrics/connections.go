package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ConnectionStats counts the connections of an HTTP server.
type ConnectionStats struct {
	Open    int   // currently
	Refused int64 // closed at once because their address had too many
	Evicted int64 // idle connections closed for new ones

	TLSEnds     time.Time // expiry of the certificate; zero without TLS
	TLSFailures int64     // failures to load new files of the certificate
}

// connectionMetrics are the metrics of an HTTP server.
var connectionMetrics = []figure[ConnectionStats]{
	{Metric{Name: "pawl_http_connections", Type: "gauge", Help: "Connections that are open."},
		func(s ConnectionStats) float64 { return float64(s.Open) }},
	{Metric{Name: "pawl_http_connections_refused_total", Type: "counter",
		Help: "Connections that were closed at once, because their address had too many."},
		func(s ConnectionStats) float64 { return float64(s.Refused) }},
	{Metric{Name: "pawl_http_connections_evicted_total", Type: "counter", Help: "Idle connections that were closed for new ones."},
		func(s ConnectionStats) float64 { return float64(s.Evicted) }},
	{Metric{Name: "pawl_tls_certificate_end_timestamp_seconds", Type: "gauge",
		Help: "When the TLS certificate ends, in Unix time; 0 without TLS."},
		func(s ConnectionStats) float64 {
			if s.TLSEnds.IsZero() {
				return 0
			}
			return float64(s.TLSEnds.Unix())
		}},
	{Metric{Name: "pawl_tls_reload_failures_total", Type: "counter",
		Help: "New files of the TLS certificate that could not be used, so that the old one stayed."},
		func(s ConnectionStats) float64 { return float64(s.TLSFailures) }},
}

// Connections returns a collector of a server's connections.
func Connections(stats func() ConnectionStats) prometheus.Collector {
	return newFigures(stats, connectionMetrics)
}
