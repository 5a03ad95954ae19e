package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl/internal/server"
)

// ofServers are the metrics of what listens.
var ofServers = []struct {
	Metric
	value func(server.Stats) float64
}{
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

// connections gives the metrics of a server.
type connections struct {
	stats func() server.Stats
	descs []*prometheus.Desc
}

// Connections measures a server by its numbers.
func Connections(stats func() server.Stats) prometheus.Collector {
	c := &connections{stats: stats}
	for _, m := range ofServers {
		c.descs = append(c.descs, prometheus.NewDesc(m.Name, m.Help, nil, nil))
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *connections) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *connections) Collect(ch chan<- prometheus.Metric) {
	now := c.stats()
	for i, m := range ofServers {
		kind := prometheus.CounterValue
		if m.Type == "gauge" {
			kind = prometheus.GaugeValue
		}
		ch <- prometheus.MustNewConstMetric(c.descs[i], kind, m.value(now))
	}
}
