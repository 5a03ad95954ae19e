package metrics

import "github.com/prometheus/client_golang/prometheus"

// MemoryStats counts the memory shared by the callers of a node.
type MemoryStats struct {
	Size, Held int64 // bytes
	Refused    int64 // requests since the start
}

// ofMemory are the metrics of that memory.
var ofMemory = []figure[MemoryStats]{
	{Metric{Name: "pawl_http_memory_limit_bytes", Type: "gauge", Help: "Memory that requests and streams may take together."},
		func(m MemoryStats) float64 { return float64(m.Size) }},
	{Metric{Name: "pawl_http_memory_held_bytes", Type: "gauge", Help: "Memory that open requests and streams have reserved."},
		func(m MemoryStats) float64 { return float64(m.Held) }},
	{Metric{Name: "pawl_http_memory_refused_total", Type: "counter",
		Help: "Requests that were refused because they, their credential, their tenant or the node had no memory left, or too many requests open."},
		func(m MemoryStats) float64 { return float64(m.Refused) }},
}

// Memory returns a collector of the memory shared by callers.
func Memory(stats func() MemoryStats) prometheus.Collector { return newFigures(stats, ofMemory) }
