package doctor

import "time"

// limits are from when on something is a finding. Those of what waits are those of the alerts in docs/operations.md.
type limits struct {
	check                   time.Duration // that one may take
	clock, clockFar         time.Duration // between the clocks of program and server
	transaction, longest    time.Duration // that a transaction is open: a warning, a problem
	lockWait                time.Duration
	used, full              float64 // of the connections: a warning, a problem
	xids, xidsLeft          int64   // since the oldest frozen one: a warning, a problem
	slotWAL                 int64   // bytes that a replication slot keeps
	walTimes                int64   // how often max_wal_size
	bloat                   int64   // bytes of an index that are empty, and
	bloatShare              float64 // which part of it
	deadRows                int64   // of a table, and
	deadShare               float64 // which part of its rows
	ahead                   time.Duration
	inFlight, due, stale    time.Duration
	lapsed, expired         time.Duration
	migration               time.Duration
	attempts                int64 // commands that were tried many times
	lag                     time.Duration
	held                    int // partitions past their age
	statement, lock, idleTx time.Duration
	workMem                 int64 // bytes
}

var defaults = limits{
	check: 5 * time.Second,
	clock: 5 * time.Second, clockFar: time.Minute,
	transaction: 5 * time.Minute, longest: time.Hour,
	lockWait: 10 * time.Second,
	used:     0.8, full: 0.95,
	xids: 1_000_000_000, xidsLeft: 1_800_000_000,
	slotWAL: 10 << 30, walTimes: 4,
	bloat: 64 << 20, bloatShare: 0.6,
	deadRows: 10_000, deadShare: 0.2,
	ahead:    7 * 24 * time.Hour,
	inFlight: 24 * time.Hour, due: 5 * time.Minute, stale: 2 * time.Minute,
	lapsed: 24 * time.Hour, expired: 6 * time.Hour,
	migration: 24 * time.Hour,
	attempts:  10,
	lag:       5 * time.Minute,
	held:      2,
	statement: time.Minute, lock: time.Second, idleTx: 10 * time.Second,
	workMem: 4 << 20,
}
