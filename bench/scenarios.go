package bench

import "slices"

// The names of the scenarios that others are compared with.
const (
	floorMany = "floor: 16 connections"
	floorOne  = "floor: 1 connection"
	floorRow  = "floor: 16 connections, one row"

	restMany = "REST: 64 connections"
	bulkMany = "REST bulk: 8 connections, 500 each"

	submitOne     = "Submit: 1 caller"
	submitMany    = "Submit: 64 callers"
	submitMost    = "Submit: 256 callers"
	submitHot     = "Submit: 64 callers, one instance"
	submitBatches = "SubmitMany: 4 callers, 1,000 each"
	createOne     = "Submit: 1 caller, creating"

	consumeMany = "Consume: 64 callers"

	awaitOne   = "in flight: 1 caller"
	awaitMany  = "in flight: 64 callers"
	submitAmid = "Submit: 256 callers, 100,000 in flight"

	pooledOne  = "Submit: 1 caller, through PgBouncer"
	pooledMost = "Submit: 256 callers, through PgBouncer"
)

// manySubscribers is how many follow the log in the larger of the two streams.
const manySubscribers = 1000

// scenarios are the lines of the table, in order. crowd is the number of
// subscribers of the larger stream; nats says whether there is a NATS server.
func scenarios(crowd int, nats bool) []*scenario {
	return slices.Concat([]*scenario{
		floorScenario(floorMany, 16, false),
		floorScenario(floorOne, 1, false),
		floorScenario(floorRow, 16, true),

		ceilingScenario("ceiling: 2 connections", 2, false),
		ceilingScenario("ceiling: 3 connections", 3, false),
		ceilingScenario("ceiling: 4 connections", 4, false),
		ceilingScenario("reading first: 3 connections", 3, true),

		submitting(submitOne, floorOne, 1, flips, false),
		submitting("Submit: 16 callers", floorMany, 16, flips, false),
		submitting(submitMany, floorMany, 64, flips, false),
		submitting(submitMost, floorMany, 256, flips, false),
		submittingMany(submitBatches, 4, flips, false),
		submitting(submitHot, floorRow, 64, notes, false),
		submitting(createOne, floorOne, 1, places, false),
		submitting("Submit: 256 callers, creating", floorMany, 256, places, false),
		submitting(replayMost, floorMany, 256, replays, true),
		submittingMany("SubmitMany: 4 callers, replays", 4, replays, true),

		consuming(consumeMany, floorMany, 64),

		awaiting(awaitOne, floorOne, 1),
		awaiting(awaitMany, floorMany, 64),
		awaiting("in flight: 256 callers", floorMany, 256),
		awaitingElsewhere("in flight: 16 callers, seen on another node", 16),
		amid(submitting(submitAmid, floorMany, 256, flips, false)),
	}, throughBouncer(), relayScenarios(nats), []*scenario{
		restSingles(restMany, 64),
		restBulk(bulkMany, 8, 500),

		streaming("WebSocket: 1 subscriber", 1, 1000),
		streaming("WebSocket: "+counted(crowd, "subscriber"), crowd, 1000),
	})
}
