// Package replay plays a log of traffic fines through Pawl with every event
// submitted twice, by two callers at the same time, and then compares what is
// durable with an independent fold of the same log.
//
//	log := replay.File("road_traffic_fines.csv.gz")
//	report, err := replay.Run(ctx, replay.Config{Log: log, Targets: []replay.Target{eng}})
//	err = replay.Check(ctx, report, replay.Evidence{Log: log, Database: pool, Verifier: eng})
//	fmt.Print(report)
//
// It shows the promise on a real case: one durable effect per event, the same
// answer for both callers, one audit row and one position without a gap per
// transition, and chains that verify. Both sides are streams, so a log of any
// length takes the memory of a few thousand events.
package replay
