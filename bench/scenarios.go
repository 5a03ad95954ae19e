package bench

import (
	"fmt"
	"slices"

	"github.com/pawlhq/pawl/internal/localpg"
)

// The names of the scenarios that others are compared with.
const (
	floorMany = "floor: 16 connections"
	floorOne  = "floor: 1 connection"
	floorRow  = "floor: 16 connections, one row"

	ceilingFirst = "ceiling: 2 connections"

	submitOne     = "Submit: 1 caller"
	submitMany    = "Submit: 64 callers"
	submitMost    = "Submit: 256 callers"
	submitHot     = "Submit: 64 callers, one instance"
	submitBatches = "SubmitMany: 4 callers, 1,000 each"
	createOne     = "Submit: 1 caller, creating"
	replayMost    = "Submit: 256 callers, replays"
	consumeMany   = "Consume: 64 callers"
	awaitOne      = "in flight: 1 caller"
	awaitMany     = "in flight: 64 callers"
	submitAmid    = "Submit: 256 callers, 100,000 in flight"
	pooledOne     = "Submit: 1 caller, through PgBouncer"
	pooledMost    = "Submit: 256 callers, through PgBouncer"

	drainFile    = "relay: a backlog to a file"
	drainStream  = "relay: a backlog to JetStream"
	drainWebhook = "relay: a backlog to a webhook"
	followFile   = "Submit: 256 callers, a file follows"
	followStream = "Submit: 256 callers, JetStream follows"
	threeSinks   = "Submit at half, three files follow"
	besideDead   = "Submit at half, and a dead webhook"

	restMany = "REST: 64 connections"
	bulkMany = "REST bulk: 8 connections, 500 each"

	fullMost    = "full: Submit, 256 callers"
	fullAny     = "full: Submit, 256 callers, any instance"
	coldReplays = "full: Submit, 256 callers, old keys, first"
	fullReplays = "full: Submit, 256 callers, old keys"
	nothingDue  = "full: purge, nothing due"
	halfRate    = "full: Submit at half of its rate"
	halfPurging = "full: Submit at half, and a purge"
)

// manySubscribers is how many follow the log in the larger of the two streams.
const manySubscribers = 1000

// scenarios are the lines of the table, in order. crowd is the number of
// subscribers of the larger stream; nats says whether there is a NATS server.
func scenarios(crowd int, nats bool) []*scenario {
	list := []*scenario{
		floorScenario(floorMany, 16, false),
		floorScenario(floorOne, 1, false),
		floorScenario(floorRow, 16, true),
		ceilingScenario(ceilingFirst, 2),
		ceilingScenario("ceiling: 4 connections", 4),
		submitting(submitOne, floorOne, 1, flips, false),
		submitting(submitMany, floorMany, 64, flips, false),
		submitting(submitMost, floorMany, 256, flips, false),
		submittingMany(submitBatches, 4, flips, false),
		submitting(submitHot, floorRow, 64, notes, false),
		submitting(createOne, floorOne, 1, places, false),
		submitting("Submit: 256 callers, creating", floorMany, 256, places, false),
		submitting(replayMost, floorMany, 256, replays, true),
		consuming(consumeMany, floorMany, 64),
		awaiting(awaitOne, floorOne, 1),
		awaiting(awaitMany, floorMany, 64),
		with(submitting(submitAmid, floorMany, 256, flips, false), func(s *scenario) { s.beside = 100_000 }),
		with(submitting(pooledOne, floorOne, 1, flips, false), func(s *scenario) { s.pooled = true }),
		with(submitting(pooledMost, floorMany, 256, flips, false), func(s *scenario) { s.pooled = true }),
		draining(drainFile, toFile),
		draining(drainWebhook, toWebhook),
		submittingTo(followFile, toFile),
		halved(threeSinks, "", theRelay, false, toFile, toFile, toFile),
		halved(besideDead, threeSinks, theRelay, false, toFile, toFile, toFile, toNobody),
		draining(drainStream, toJetStream),
		submittingTo(followStream, toJetStream),
		restSingles(restMany, 64),
		restBulk(bulkMany, 8, 500),
		streaming("WebSocket: 1 subscriber", 1, 1000),
		streaming(fmt.Sprintf("WebSocket: %d subscribers", crowd), crowd, 1000),
	}
	bouncer := localpg.HasBouncer()
	return slices.DeleteFunc(list, func(s *scenario) bool {
		return s.pooled && !bouncer || !nats && (s.name == drainStream || s.name == followStream)
	})
}

// largeScenarios run on empty and on full tables in turns.
func largeScenarios() []*scenario {
	full := func(s *scenario) { s.full = true }
	return []*scenario{
		submitting(submitMost, "", 256, flips, false),
		submitting(replayMost, "", 256, replays, true),
		with(submitting(coldReplays, replayMost, 256, oldKeys, true), func(s *scenario) { s.full, s.once = true, true }),
		with(submitting(fullMost, submitMost, 256, flips, false), full),
		with(submitting(fullAny, submitMost, 256, anyOld, false), full),
		with(submitting(fullReplays, replayMost, 256, oldKeys, true), func(s *scenario) { s.full, s.warm = true, true }),
		with(purgingNothing(nothingDue), full),
		with(halved(halfRate, "", theEngine, false), full),
		with(halved(halfPurging, halfRate, theEngine, true), full),
	}
}

func with(s *scenario, change func(*scenario)) *scenario {
	change(s)
	return s
}

// goal is a ratio that a run should reach, or a duration in milliseconds.
type goal struct {
	text   string
	limit  float64
	atMost bool // limit is the most that it may be, not the least
	name   string
	than   string // "": with nothing
	value  func(*sample) float64
}

// theBest stands for the best of the ceilings.
const theBest = "the best ceiling"

var goals = []goal{
	{"Submit, 256 callers: at least 7 × floor", 7, false, submitMost, floorMany, (*sample).rate},
	{"Submit, 256 callers: at least 0.7 × ceiling", 0.7, false, submitMost, theBest, (*sample).rate},
	{"SubmitMany: at least 0.8 × ceiling", 0.8, false, submitBatches, theBest, (*sample).rate},
	{"Submit, one hot instance: at least 5 × floor on one row", 5, false, submitHot, floorRow, (*sample).rate},
	{"a transition, 1 caller, p50: at most 0.6 × floor's", 0.6, true, submitOne, floorOne, p50},
	{"a creation, 1 caller, p50: at most 0.45 × floor's", 0.45, true, createOne, floorOne, p50},
	{"Consume, 64 callers: at least 0.8 × Submit, 64 callers", 0.8, false, consumeMany, submitMany, (*sample).rate},
	{"in flight, 64 callers: at least 1.2 × floor", 1.2, false, awaitMany, floorMany, (*sample).rate},
	{"in flight, 1 caller, p50: at most 3 ms", 3, true, awaitOne, "", p50},
	{"Submit amid 100,000 in flight: at least 0.95 × without", 0.95, false, submitAmid, submitMost, (*sample).rate},
	{"Submit through PgBouncer, 256 callers: at least 0.6 × direct", 0.6, false, pooledMost, submitMost, (*sample).rate},
	{"Submit through PgBouncer, 1 caller: at least 0.35 × direct", 0.35, false, pooledOne, submitOne, (*sample).rate},
	{"a backlog to a file: at least 1 × Submit, 256 callers", 1, false, drainFile, submitMost, (*sample).rate},
	{"a backlog to JetStream: at least 1 × Submit, 256 callers", 1, false, drainStream, submitMost, (*sample).rate},
	{"Submit, a file follows: at least 0.8 × without", 0.8, false, followFile, submitMost, (*sample).rate},
	{"Submit, JetStream follows: at least 0.8 × without", 0.8, false, followStream, submitMost, (*sample).rate},
	{"lag beside a dead sink, p99: at most 1.5 × without", 1.5, true, besideDead, threeSinks, lag},
	{"REST, 64 connections: at least 2 × floor", 2, false, restMany, floorMany, (*sample).rate},
	{"REST bulk: at least 5 × floor", 5, false, bulkMany, floorMany, (*sample).rate},
}

// largeGoals are those of a run on full tables.
var largeGoals = []goal{
	{"Submit on full tables: at least 0.85 × on empty ones", 0.85, false, fullMost, submitMost, (*sample).rate},
	{"replays of old keys: at least 0.8 × on empty tables", 0.8, false, fullReplays, replayMost, (*sample).rate},
	{"a purge with nothing due, p99: at most 10 ms", 10, true, nothingDue, "", p99},
	{"a purge beside Submit at half of its rate: its p99 at most 2 × without", 2, true, halfPurging, halfRate, p99},
}

// These are in milliseconds.
func p50(s *sample) float64 { return float64(s.latency.p50) / 1e6 }
func p99(s *sample) float64 { return float64(s.latency.p99) / 1e6 }
func lag(s *sample) float64 { return float64(s.relayed.lag.p99) / 1e6 }
