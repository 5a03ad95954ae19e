// Package faults holds the tests that hurt the engine: connections that are
// killed, locks that are held, answers that are lost, nodes that race, programs
// that stop in the middle. They go through the public interface, on a real
// PostgreSQL, and take longer than the tests beside the code.
//
// With PAWL_DATA naming the folder of road_traffic_fines.csv.gz the replays take
// their events from that log, and from a made-up one without it. PAWL_FULL=1
// replays the whole log, and kills the nodes that deliver to sinks 100 times during
// 100,000 events. PAWL_HOLD is how long locks are held, "3s" without it.
package faults
