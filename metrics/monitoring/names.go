package monitoring

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/metrics"
)

// metricName finds the metrics in a query, those of the Go runtime and of the process too.
var metricName = regexp.MustCompile(`\b(?:pawl|go|process)_[a-z_]+\b\{?`)

// ofJob lets a query be about the metrics of the jobs that are chosen on the dashboard.
func ofJob(query string) string {
	return metricName.ReplaceAllStringFunc(query, func(name string) string {
		if bare, filtered := strings.CutSuffix(name, "{"); filtered {
			return bare + `{job=~"$job", `
		}
		return name + `{job=~"$job"}`
	})
}

// Metrics are those of package metrics that a query names. What it names and what is not there is in unknown.
func Metrics(query string) (list []metrics.Metric, unknown []string) {
	table := metrics.Table()
	for _, name := range metricName.FindAllString(query, -1) {
		if name = strings.TrimSuffix(name, "{"); !strings.HasPrefix(name, "pawl_") {
			continue
		}
		i := slices.IndexFunc(table, func(m metrics.Metric) bool { return seriesOf(m, name) })
		if i < 0 {
			unknown = append(unknown, name)
			continue
		}
		if !slices.ContainsFunc(list, func(m metrics.Metric) bool { return m.Name == table[i].Name }) {
			list = append(list, table[i])
		}
	}
	return list, unknown
}

// seriesOf reports whether series of a metric have this name.
func seriesOf(m metrics.Metric, name string) bool {
	suffix, is := strings.CutPrefix(name, m.Name)
	return is && (suffix == "" || m.Type == "histogram" && (suffix == "_bucket" || suffix == "_sum" || suffix == "_count"))
}
