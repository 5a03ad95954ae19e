// Package workflow is what a user declares: a case or an order as states and
// transitions, with typed data and typed payloads.
//
//	var Workflow = workflow.Define("order", 1,
//		workflow.Start("place", Placed, place).BusinessKey(cartOf),
//		workflow.On("pay", workflow.From(Placed), Paid, pay),
//		workflow.On("ship", workflow.From(Paid), Shipped, ship).Role("warehouse"),
//	).Final(Shipped).Roles("warehouse")
//
// The compiler checks the types: an action of one workflow cannot be declared
// in another, and an action receives exactly the payload that its transition
// was declared with. [Definition.Build] checks the rest, reports every mistake
// at once, and yields a [Workflow], the form that an engine runs.
//
// The package is pure: nothing in it reads a clock, a context or a database.
// An action is a function of the instance's data, the payload and the [Call],
// so that a decision can be repeated, dry-run and fuzzed.
package workflow
