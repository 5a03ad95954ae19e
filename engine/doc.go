// Package engine runs workflows on PostgreSQL: it composes the commit pipeline,
// the log's feed and the queries, and is what a Go program talks to.
//
//	eng, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{order.Workflow(payments)}})
//	err = eng.Start(ctx)
//	receipt, err := eng.Submit(ctx, transitions.Command{Workflow: "order", Transition: "place", Key: "checkout-7", Payload: payload})
//
// The promise: same intent, same payload, same scope, one durable effect, and the same answer on every retry. State, audit row, events and
// answer commit in one transaction.
package engine
