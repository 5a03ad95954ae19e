package metrics

import "github.com/prometheus/client_golang/prometheus"

// figure is a metric that is one number of a snapshot.
type figure[S any] struct {
	Metric
	value func(S) float64
}

// figures is the collector of such metrics.
type figures[S any] struct {
	stats func() S
	all   []figure[S]
	descs []*prometheus.Desc
}

func newFigures[S any](stats func() S, all []figure[S]) *figures[S] {
	f := &figures[S]{stats: stats, all: all}
	for _, m := range all {
		f.descs = append(f.descs, prometheus.NewDesc(m.Name, m.Help, nil, nil))
	}
	return f
}

// Describe implements prometheus.Collector.
func (f *figures[S]) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range f.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (f *figures[S]) Collect(ch chan<- prometheus.Metric) {
	now := f.stats()
	for i, m := range f.all {
		kind := prometheus.CounterValue
		if m.Type == "gauge" {
			kind = prometheus.GaugeValue
		}
		ch <- prometheus.MustNewConstMetric(f.descs[i], kind, m.value(now))
	}
}
