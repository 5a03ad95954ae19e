// Package workflow is what a user declares: a case or an order as states and
// transitions, with typed data and typed payloads.
//
//	var Workflow = workflow.Define("order", 1,
//		workflow.Start("place", Placed, place).BusinessKey(cartOf),
//		workflow.Do("pay", workflow.From(Placed), Paying, Paid, charge, recordCharge).
//			OrElse(PaymentFailed, explain).Undo(refund),
//		workflow.On("ship", workflow.From(Paid), Shipped, ship).Role("warehouse"),
//		workflow.On("expire", workflow.From(Placed), Expired, expire),
//	).Final(Shipped, PaymentFailed, Expired).Roles("warehouse").
//		After("payment-deadline", workflow.From(Placed), 48*time.Hour, "expire")
//
// The compiler checks the types: an action of one workflow cannot be declared
// in another, and an action receives exactly the payload that its transition
// was declared with. [Definition.Build] checks the rest, reports every mistake
// at once, and yields a [Workflow], the form that an engine runs.
//
// Deciding is pure: nothing in the package reads a clock, a context or a
// database. An action is a function of the instance's data, the payload and the
// [Call], so that a decision can be repeated, dry-run and fuzzed. What touches
// the world is the work of an [Activity] alone, which an engine runs outside of
// every decision and transaction.
package workflow
