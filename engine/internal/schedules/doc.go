// Package schedules submits the runs of schedules that are due.
//
// A schedule is an instance of the workflow of package schedule. Its transitions write a row of the table schedule in their transaction
// (see [Hook]); the row has the progress. The database decides:
//
//   - A node claims due rows for the time of a lease, by moving due_at. Rows that
//     another node has locked are skipped.
//   - The idempotency key of a run is its nominal time, in the scope of the
//     schedule. A run that is submitted twice, by a node that was overtaken or
//     after a crash, is one command.
//   - The progress is written after the answers, guarded by the number of the
//     claim. A change of the schedule in the meantime keeps its own times.
//
// One goroutine polls: at the time at which the next schedule is due, and every 20 seconds for changes of other nodes. Each group of
// claimed schedules is submitted in a goroutine of its own, so that a command that waits delays no other schedule.
package schedules
