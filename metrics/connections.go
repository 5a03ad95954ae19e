package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl/internal/server"
)

// ofServers are the metrics of what listens.
var ofServers = []figure[server.Stats]{
	{Metric{Name: "pawl_http_connections", Type: "gauge", Help: "Connections that are open."},
		func(s server.Stats) float64 { return float64(s.Open) }},
	{Metric{Name: "pawl_http_connections_refused_total", Type: "counter",
		Help: "Connections that were closed at once, because their address had too many."},
		func(s server.Stats) float64 { return float64(s.Refused) }},
	{Metric{Name: "pawl_http_connections_evicted_total", Type: "counter", Help: "Idle connections that were closed to make place for others."},
		func(s server.Stats) float64 { return float64(s.Evicted) }},
	{Metric{Name: "pawl_tls_certificate_end_timestamp_seconds", Type: "gauge",
		Help: "When the TLS certificate ends, in Unix time; 0 without TLS."},
		func(s server.Stats) float64 {
			if s.TLSEnds.IsZero() {
				return 0
			}
			return float64(s.TLSEnds.Unix())
		}},
	{Metric{Name: "pawl_tls_reload_failures_total", Type: "counter",
		Help: "New files of the TLS certificate that could not be used, so that the old one stayed."},
		func(s server.Stats) float64 { return float64(s.TLSFailures) }},
}

// Connections measures a server by its numbers.
func Connections(stats func() server.Stats) prometheus.Collector { return newFigures(stats, ofServers) }
