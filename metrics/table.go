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
	var list []Metric
	for _, k := range kinds {
		list = append(list, k.Metric)
	}
	list = append(append(list, requestsTotal, requestsTook), ofAuth...)
	for _, m := range connectionMetrics {
		list = append(list, m.Metric)
	}
	for _, m := range ofMemory {
		list = append(list, m.Metric)
	}
	return list
}

// kinds are the metrics of a Collector in the order of their declaration.
var kinds []kind

// kind is a metric of a Collector.
type kind struct {
	Metric
	desc  *prometheus.Desc
	value prometheus.ValueType
}

// counter declares a counter of this node.
func counter(name, help string, labels ...string) kind {
	return declare(Metric{Name: name, Type: "counter", Labels: labels, Help: help})
}

// gauge declares a gauge of this node.
func gauge(name, help string, labels ...string) kind {
	return declare(Metric{Name: name, Type: "gauge", Labels: labels, Help: help})
}

// histogram declares a histogram of this node.
func histogram(name, help string, labels ...string) kind {
	return declare(Metric{Name: name, Type: "histogram", Labels: labels, Help: help})
}

// sharedCounter declares a counter stored in the database.
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

// number is the type of a value.
type number interface {
	~int | ~int64 | ~uint64 | ~float64
}

// send sends a value of a metric with its labels.
func send[N number](ch chan<- prometheus.Metric, k kind, n N, labels ...string) {
	ch <- prometheus.MustNewConstMetric(k.desc, k.value, float64(n), labels...)
}
