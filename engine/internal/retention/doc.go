// Package retention ends what is past its retention time, which workflow.Horizons
// tells of keys and engine.RetentionConfig of events, and removes what nobody needs any
// more: answers become tombstones, tombstones are forgotten, commands that
// nobody goes on with fail, and old partitions of the outbox and of the history
// of commands are dropped. It also makes partitions ahead of time.
//
// One node does it, under a lease in the table leadership; the others poll now and then
// whether it still does. The lease saves work and is not what makes it right: two
// that work at once take different rows, and every step is one transaction, or one
// that the next runner finishes.
//
// The rule of what goes when is in two places: of keys it is the function pawl.purge in
// the schema's migrations, which Runner.purge calls batch by batch; of partitions it is
// Runner.judge. Runner.giveUp ends commands whose workflow no node knows.
//
// Batches are as large as can be done in a tenth of a second, and the pauses
// between them grow with how busy this node's commit pipeline is.
package retention
