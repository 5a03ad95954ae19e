package bench

import (
	"slices"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/pawlhq/pawl/internal/testkit/bouncer"
)

// The names of the scenarios that others are compared with.
const (
	floorMany = "floor: 16 connections"
	floorOne  = "floor: 1 connection"
	floorRow  = "floor: 16 connections, one row"
	leanMany  = "lean floor: 16 connections"
	leanMost  = "lean floor: 64 connections"

	ceilingName = "ceiling: 2 connections"

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
	submitTraced  = "Submit: 256 callers, traced"
	submitUntold  = "Submit: 256 callers, traced, none sampled"
	submitAmid    = "Submit: 256 callers, 100,000 in flight"
	submitTenants = "Submit: 256 callers, 16 tenants"
	submitOthers  = "Submit: 256 callers, 1,000 tenants"
	submitLater   = "Submit: 256 callers, later"
	submitAged    = "Submit: 256 callers, later, an old snapshot"
	threeNodes    = "Submit: 3 nodes, 256 callers in all"
	besideHeld    = "Submit: 64 callers, with a held log"
	heapLarge     = "heap: 256 callers, 900 kB of data each"
	heapHeld      = "heap: 64 impatient callers, a held log"
	pooledOne     = "Submit: 1 caller, through PgBouncer"
	pooledMost    = "Submit: 256 callers, through PgBouncer"

	waitMany   = "idle: 5,000 tenants, a waiter each"
	pausedMany = "idle: 5,000 paused instances with due timers"
	behindMany = "idle: 100,000 due that cannot be taken"

	migrateAll  = "migrate: 10,240 instances"
	migrateAmid = "Submit at half, instances are migrated"

	workAlone       = "in flight: activities of 50 ms, 16 workers"
	workBesideOne   = "in flight: the same, with one old node"
	workBesideThree = "in flight: the same, with three old nodes"

	drainFile    = "relay: a backlog to a file"
	drainStream  = "relay: a backlog to JetStream"
	drainWebhook = "relay: a backlog to a webhook"
	followFile   = "Submit: 256 callers, a file follows"
	followStream = "Submit: 256 callers, JetStream follows"
	threeSinks   = "Submit at half, three files follow"
	besideDead   = "Submit at half, and a dead webhook"

	restMany   = "REST: 64 connections"
	restTokens = "REST: 64 connections, with JWTs"
	restKeys   = "REST: 64 connections, with API keys"
	bulkMany   = "REST bulk: 8 connections, 500 each"

	tooMany     = "overload: Submit at 10 times"
	restTooMany = "overload: REST at 10 times, a slow database"
	restTwice   = "overload: REST at twice"

	fullMost    = "full: Submit, 256 callers"
	fullAny     = "full: Submit, 256 callers, any instance"
	fullReplays = "full: Submit, 256 callers, old keys"
	nothingDue  = "full: purge, nothing due"
	halfRate    = "full: Submit at half of its rate"
	halfPurging = "full: Submit at half, and a purge"
)

// manySubscribers is how many follow the log in the larger of the two streams, of
// which the other has a tenth.
const manySubscribers = 1000

// scenarios are the lines of the table, in order. crowd is the number of subscribers of the larger stream, and what else is
// large is so many times as large as in a test; nats says whether there is a NATS server.
func scenarios(crowd int, nats bool) []*scenario {
	list := []*scenario{
		floorScenario(floorMany, 16, false),
		floorScenario(floorOne, 1, false),
		floorScenario(floorRow, 16, true),
		leanScenario(leanMany, 16),
		leanScenario(leanMost, 64),
		ceilingScenario(ceilingName, 2),
		submitting(submitOne, floorOne, 1, flips, false),
		submitting(submitMany, floorMany, 64, flips, false),
		submitting(submitMost, floorMany, 256, flips, false),
		submittingTraced(submitUntold, submitMost, 256, sdktrace.NeverSample()),
		submittingTraced(submitTraced, submitMost, 256, sdktrace.AlwaysSample()),
		submittingMany(submitBatches, 4, flips, false),
		submitting(submitHot, floorRow, 64, notes, false),
		submitting(createOne, floorOne, 1, places, false),
		submitting("Submit: 256 callers, creating", floorMany, 256, places, false),
		submitting(replayMost, floorMany, 256, replays, true),
		consuming(consumeMany, floorMany, 64),
		awaiting(awaitOne, floorOne, 1),
		awaiting(awaitMany, floorMany, 64),
		with(submitting(submitAmid, floorMany, 256, flips, false), func(s *scenario) { s.beside = 100_000 }),
		with(submitting(submitTenants, submitMost, 256, flips, false), func(s *scenario) { s.tenants = 16 }),
		with(submitting(submitOthers, submitMost, 256, flips, false), func(s *scenario) { s.tenants = 1000 }),
		aged(submitLater, submitMost, 256, false),
		aged(submitAged, submitLater, 256, true),
		submittingAt(threeNodes, submitMost, 3, 256, flips),
		besideAHeldLog(besideHeld, submitMany, 64, 20*crowd),
		largeData(heapLarge, 256, 900*crowd),
		impatient(heapHeld, 64, 20_000),
		with(submitting(pooledOne, submitOne, 1, flips, false), func(s *scenario) { s.pooled = true }),
		with(submitting(pooledMost, submitMost, 256, flips, false), func(s *scenario) { s.pooled = true }),
		waiting(waitMany),
		pausing(pausedMany),
		behind(behindMany),
		migratingAlone(migrateAll),
		migratingAmid(migrateAmid, 256),
		workingBeside(workAlone, "", 0, crowd),
		workingBeside(workBesideOne, workAlone, 1, crowd),
		workingBeside(workBesideThree, workAlone, 3, crowd),
		draining(drainFile, toFile),
		draining(drainWebhook, toWebhook),
		submittingTo(followFile, toFile),
		halved(threeSinks, "", false, toFile, toFile, toFile),
		halved(besideDead, threeSinks, false, toFile, toFile, toFile, toNobody),
		unseen(10*crowd, 30),
		draining(drainStream, toJetStream),
		submittingTo(followStream, toJetStream),
		restSingles(restMany, 64, byName),
		restSingles(restTokens, 64, byToken),
		restSingles(restKeys, 64, byKey),
		restBulk(bulkMany, 8, 500),
		overloading(tooMany, 256, 10, inProcess),
		overloading(restTooMany, 64, 10, overREST(true)),
		overloading(restTwice, 256, 2, overREST(false)),
		streaming(crowd/10, 1000),
		streaming(crowd, 1000),
	}
	installed := bouncer.Installed()
	return slices.DeleteFunc(list, func(s *scenario) bool {
		return s.pooled && !installed || !nats && (s.name == drainStream || s.name == followStream)
	})
}

// largeScenarios run on empty and on full tables in turns.
func largeScenarios() []*scenario {
	full := func(s *scenario) { s.full = true }
	return []*scenario{
		submitting(submitMost, "", 256, flips, false),
		submitting(replayMost, "", 256, replays, true),
		with(submitting(fullMost, submitMost, 256, flips, false), full),
		with(submitting(fullAny, submitMost, 256, anyOld, false), full),
		with(submitting(fullReplays, replayMost, 256, oldKeys, true), func(s *scenario) { s.full, s.warm = true, true }),
		with(purgingNothing(nothingDue), full),
		with(halved(halfRate, "", false), full),
		with(halved(halfPurging, halfRate, true), full),
	}
}

func with(s *scenario, change func(*scenario)) *scenario {
	change(s)
	return s
}

// These are in milliseconds.
func p50(s *sample) float64 { return float64(s.latency.p50) / 1e6 }
func p99(s *sample) float64 { return float64(s.latency.p99) / 1e6 }
