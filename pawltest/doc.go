// Package pawltest is for the tests of those who declare workflows.
//
// [Run] plays workflows in memory: the same decisions and the same policy of retries as an engine's, no database, and a clock that goes
// only when it is told to. So a test of an order that expires after a day takes no day:
//
//	func TestAnUnpaidOrderIsCancelled(t *testing.T) {
//		sim := pawltest.Run(t, order.Workflow(provider.New()))
//		o := sim.Start("order", "place", order.Place{Customer: "c-1", Cart: "k-9", Total: 1299, Currency: "EUR"})
//		sim.Skip(order.PayWithin)
//		if o.State() != order.Cancelled {
//			t.Errorf("the order is %s", o.State())
//		}
//	}
//
// Activities are accepted as on an engine, and run when the clock moves, in the goroutine of the test: the declared functions, or what
// [Fake] puts in their place. [Sim.LoseWorker] shows what becomes of an effect whose worker is lost. Nothing is random: ids count up, and a
// retry waits as long as its policy allows at most.
//
// [Sim.Consume] takes a message from outside, as often as it is delivered, and [Sim.DeadMessages] are those that could not be done.
//
// What a run does not have: the SQL of a transition's Hook, limits of concurrency, several nodes, the audit chain's hashes. The deadline of
// an attempt's context is of the real clock; a function that shall have timed out returns [context.DeadlineExceeded].
//
// [Postgres] and [Engine] are for tests of the real thing: a database of the
// test's own, on a private server where none is given, and an engine on it.
package pawltest
