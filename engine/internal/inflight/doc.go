// Package inflight runs commands in flight: activities and undos, scheduled commands that are due, and work of nodes that stopped.
//
// A worker holds a lease on its command: status processing, its node in claimed_by, and locked_until. A lease begins with a claim,
// which increments the attempt. The attempt is the fencing token: every later write names it, so only the newest worker of a command
// can change its row.
//
// # What the database decides
//
//   - A claim is an update guarded by the attempt that was read, with SKIP LOCKED. Only one of several nodes gets the command.
//   - Leases are measured by the database's clock, so a node's clock cannot extend or end one. Due times are compared with the
//     engine's clock, which tests control.
//   - Heartbeats, releases and completions are guarded by the attempt. Completions are written by the commit pipeline.
//   - An expired lease can be extended until another node claims it. Other nodes leave it alone while its holder may
//     still return; see contact.
//
// No statement waits for a row lock, except that of [Runner.Cancel], which has a connection of its own and a short timeout. A locked
// row is being changed by another transaction and is tried again later. Each writing statement names one tenant; statements of
// several tenants are sent in one message.
//
// # The path of a command
//
//	started here, with a free worker → Updated ─────┐
//	due, or its lease has expired → poll → claim ───┴→ launch → run ─┬→ submitOutcome or submitDue
//	                                                                 └→ giveBack: retried later, or by an operator
//
// A timer is a scheduled command. pollLoop asks nextRequest what to poll for, poll finds the timer (store.Flights.Poll), and claim
// leases it. launch starts run in a goroutine, where submitDue prepares the command (InFlight.Due of internal/kernel/decide) and
// submits it to the pipeline (Continue). An activity uses attempt and submitOutcome instead of submitDue.
//
// # Goroutines
//
// The poller finds and claims due work, every second or two and when it is notified. Before it polls, it releases commands that this node
// may have leased in a commit with an unknown outcome; the heartbeater does so at its end. The heartbeater extends leases, stores progress
// and releases commands, for all attempts of the node together. Every attempt has its own goroutine, which normally sends no queries.
//
// Pure functions of internal/kernel/decide decide about a command before, during and after an attempt.
package inflight
