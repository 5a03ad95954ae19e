package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Refusals counts rejected callers and exports the state of verification keys. It is safe for
// concurrent use.
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
		"Refused callers, by the problem of their credential, or `grant` for a missing right.", "reason")
	authKeys    = gauge("pawl_auth_keys", "Keys of the identity provider that are used.")
	keyReads    = counter("pawl_auth_key_reads_total", "How often the keys of the identity provider were asked for.")
	keyFailures = counter("pawl_auth_key_failures_total", "How often they could not be read.")
	keysRead    = gauge("pawl_auth_keys_read_seconds", "When the keys of the identity provider were read last, in seconds since 1970.")

	apiKeysKnown    = gauge("pawl_auth_api_keys", "API keys that the node remembers.")
	keyLookups      = counter("pawl_auth_api_key_lookups_total", "API keys that were not remembered, and looked up in the database.")
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
