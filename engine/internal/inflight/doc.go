// Package inflight runs commands in flight: activities and undos, scheduled commands that are due, and work of nodes that stopped.
//
// The worker of a command holds its lease: status processing, its node in claimed_by, and locked_until. A lease begins with a claim,
// which increments the attempt; the attempt is the fencing token, and every later write names it. So only the newest worker of a command
// can change its row.
//
// The database decides:
//
//   - A claim is an update guarded by the attempt that was seen, under a lock
//     that is not waited for. Of two nodes that want a command one gets it.
//   - Leases last by the database's clock alone, so that no node's clock can
//     prolong or end one. What is due is due by the engine's clock, which tests
//     move.
//   - Heartbeats, give-backs and endings are guarded by the attempt. The ending
//     itself is the commit pipeline's.
//   - A lease that has run out may be prolonged for as long as nobody has taken it.
//     Others leave it alone until its holder could have come back: see contact.
//
// No statement here waits for a row's lock but [Runner.Cancel]'s, on a connection
// of its own and not for long: a row that somebody has locked is being changed by
// him, and is tried again later. Each writing statement names one tenant; those of
// several tenants go in one message.
//
// A command goes through these hands:
//
//	accepted here, with a free worker → Updated ─────┐
//	due, or its lease has run out → poll → claim ────┴→ launch → run ─┬→ submitOutcome or submitDue
//	                                                                  └→ giveBack: for later, or for an operator
//
// How a timer fires, which is a scheduled command: pollLoop asks nextRequest what to
// poll for, poll finds it (store.Flights.Poll) and claim leases it; launch begins run in a
// goroutine of its own, where submitDue makes the command ready (InFlight.Due of internal/kernel/decide) and
// has the pipeline decide it (Continue). An activity takes the same way, with attempt
// and submitOutcome in the place of submitDue.
//
// One goroutine, the poller, polls for due work and claims it: every second or two,
// and when it has reason to. Before it polls it asks for what this node may have
// leased by a commit whose answer was lost, which is given back; the keeper does so
// when it ends. One goroutine, the keeper, prolongs leases, stores progress and gives
// commands back, for all attempts of the node together. Every attempt has a goroutine
// of its own and, when all goes well, asks the database nothing.
//
// What becomes of a command before, during and after an attempt is decided by
// pure functions of internal/kernel/decide.
package inflight
