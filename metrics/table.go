package metrics

import "github.com/prometheus/client_golang/prometheus"

// Metric is the documentation of a metric.
type Metric struct {
	Name   string
	Type   string // counter, gauge or histogram
	Labels []string
	Help   string
	Shared bool // from the database: the same on every node
}

// Table lists all metrics by subject.
func Table() []Metric {
	list := make([]Metric, len(kinds))
	for i, k := range kinds {
		list[i] = k.Metric
	}
	return list
}

// kinds are all metrics in the order of their declaration.
var kinds []kind

type kind struct {
	Metric
	desc  *prometheus.Desc
	value prometheus.ValueType
}

// counter declares a counter of this node.
func counter(name, help string, labels ...string) kind {
	return declare(Metric{Name: name, Type: "counter", Labels: labels, Help: help})
}

func gauge(name, help string, labels ...string) kind {
	return declare(Metric{Name: name, Type: "gauge", Labels: labels, Help: help})
}

func histogram(name, help string, labels ...string) kind {
	return declare(Metric{Name: name, Type: "histogram", Labels: labels, Help: help})
}

func sharedCounter(name, help string, labels ...string) kind {
	return declare(Metric{Name: name, Type: "counter", Labels: labels, Help: help, Shared: true})
}

// sharedGauge declares a gauge of the database.
func sharedGauge(name, help string, labels ...string) kind {
	return declare(Metric{Name: name, Type: "gauge", Labels: labels, Help: help, Shared: true})
}

func declare(m Metric) kind {
	k := kind{Metric: m, desc: prometheus.NewDesc(m.Name, m.Help, m.Labels, nil), value: prometheus.GaugeValue}
	if m.Type == "counter" {
		k.value = prometheus.CounterValue
	}
	kinds = append(kinds, k)
	return k
}

// vec returns a counter with the labels of a metric.
func (k kind) vec() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: k.Name, Help: k.Help}, k.Labels)
}

// send sends a value of a metric with its labels.
func send[N ~int | ~int64 | ~uint64 | ~float64](ch chan<- prometheus.Metric, k kind, n N, labels ...string) {
	ch <- prometheus.MustNewConstMetric(k.desc, k.value, float64(n), labels...)
}

// collector sends the metrics of a snapshot. It describes nothing, like [Requests].
type collector func(ch chan<- prometheus.Metric)

// Describe implements prometheus.Collector.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) { c(ch) }
