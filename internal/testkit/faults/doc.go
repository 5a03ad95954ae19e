// Package faults holds the tests with injected faults: killed connections, held locks, lost answers, racing nodes, programs that stop at
// any point. They use the public interface, on a real PostgreSQL, and take longer than the tests of each package.
//
// If PAWL_DATA names the folder of road_traffic_fines.csv.gz, the replays take their events from that log, otherwise from a generated one.
// PAWL_FULL=1 replays the whole log, and kills the nodes that deliver to sinks 100 times during 100,000 events.
package faults
