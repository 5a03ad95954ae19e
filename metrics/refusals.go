package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Refusals counts rejected callers and exports the state of verification keys. It is safe for
// concurrent use.
type Refusals struct {
	// Keys returns the state of the identity provider's keys. Nil without tokens. Set it before the
	// first scrape.
	Keys func() TokenKeys

	// APIKeys returns the state of the API keys. Nil without API keys. Set it before the first
	// scrape.
	APIKeys func() APIKeys

	total *prometheus.CounterVec
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

// Metrics of Refusals.
var (
	refusedTotal = Metric{Name: "pawl_auth_refused_total", Type: "counter", Labels: []string{"reason"},
		Help: "Refused callers, by the problem of their credential, or `grant` for a missing right."}
	authKeys = Metric{Name: "pawl_auth_keys", Type: "gauge", Help: "Keys of the identity provider that are used."}
	keyReads = Metric{Name: "pawl_auth_key_reads_total", Type: "counter",
		Help: "How often the keys of the identity provider were asked for."}
	keyFailures = Metric{Name: "pawl_auth_key_failures_total", Type: "counter", Help: "How often they could not be read."}
	keysRead    = Metric{Name: "pawl_auth_keys_read_seconds", Type: "gauge",
		Help: "When the keys of the identity provider were read last, in seconds since 1970."}
)

var (
	apiKeysKnown = Metric{Name: "pawl_auth_api_keys", Type: "gauge", Help: "API keys that the node remembers."}
	keyLookups   = Metric{Name: "pawl_auth_api_key_lookups_total", Type: "counter",
		Help: "API keys that were not remembered, and looked up in the database."}
	keyLooks = Metric{Name: "pawl_auth_api_key_looks_total", Type: "counter",
		Help: "Polls of the table of API keys."}
	keyLookFailures = Metric{Name: "pawl_auth_api_key_look_failures_total", Type: "counter", Help: "Polls of the table of API keys that failed."}
)

var ofAuth = []Metric{refusedTotal, authKeys, keyReads, keyFailures, keysRead, apiKeysKnown, keyLookups, keyLooks, keyLookFailures}

// NewRefusals returns a Refusals without counts.
func NewRefusals() *Refusals {
	opts := prometheus.CounterOpts{Name: refusedTotal.Name, Help: refusedTotal.Help}
	return &Refusals{total: prometheus.NewCounterVec(opts, refusedTotal.Labels)}
}

// Count counts a rejection.
func (m *Refusals) Count(reason string) { m.total.WithLabelValues(reason).Inc() }

// Describe implements prometheus.Collector.
func (m *Refusals) Describe(ch chan<- *prometheus.Desc) {
	m.total.Describe(ch)
	for _, one := range ofAuth[1:] {
		ch <- describe(one)
	}
}

func describe(m Metric) *prometheus.Desc { return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil) }

// Collect implements prometheus.Collector.
func (m *Refusals) Collect(ch chan<- prometheus.Metric) {
	m.total.Collect(ch)
	if m.Keys != nil {
		m.collectTokenKeys(ch, m.Keys())
	}
	if m.APIKeys != nil {
		now := m.APIKeys()
		ch <- prometheus.MustNewConstMetric(describe(apiKeysKnown), prometheus.GaugeValue, float64(now.Known))
		ch <- prometheus.MustNewConstMetric(describe(keyLookups), prometheus.CounterValue, float64(now.Lookups))
		ch <- prometheus.MustNewConstMetric(describe(keyLooks), prometheus.CounterValue, float64(now.Looks))
		ch <- prometheus.MustNewConstMetric(describe(keyLookFailures), prometheus.CounterValue, float64(now.Failures))
	}
}

func (m *Refusals) collectTokenKeys(ch chan<- prometheus.Metric, now TokenKeys) {
	ch <- prometheus.MustNewConstMetric(describe(authKeys), prometheus.GaugeValue, float64(now.Keys))
	ch <- prometheus.MustNewConstMetric(describe(keyReads), prometheus.CounterValue, float64(now.Reads))
	ch <- prometheus.MustNewConstMetric(describe(keyFailures), prometheus.CounterValue, float64(now.Failures))
	if !now.Read.IsZero() {
		ch <- prometheus.MustNewConstMetric(describe(keysRead), prometheus.GaugeValue, float64(now.Read.Unix()))
	}
}
