// Package retention removes data after its retention period, which workflow.Horizons sets for keys and engine.RetentionConfig for events:
// answers become tombstones, tombstones are deleted, commands that no node continues fail, and old partitions of the outbox and of the
// history of commands are dropped. It also creates partitions ahead of time.
//
// One node does this, under a lease in the table leadership; the others poll whether the lease has expired. The lease saves work but is not
// needed for correctness: two nodes take different rows, and every step is one transaction, or can be finished by the next node.
//
// The rules are in two places: for keys in the function pawl.purge of the schema's migrations, which Runner.purge calls batch by batch; for
// partitions in Runner.judge. Runner.giveUp ends commands whose workflow no node knows.
//
// A batch takes about a tenth of a second, and the delays between batches grow with the load of this node's commit pipeline.
package retention
