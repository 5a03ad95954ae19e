package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
)

// Flights executes statements about commands in flight.
type Flights struct {
	in func(sql string) string
}

// NewFlights returns Flights; in inserts the schema's name into a statement.
func NewFlights(in func(sql string) string) *Flights { return &Flights{in} }

// PollRequest is a poll for due work.
type PollRequest struct {
	Now       time.Time // by the engine's clock
	Works     int       // how much work could be taken
	Full      []string  // activities of which nothing can be taken: workflow, a space, transition
	Scheduled int       // how many scheduled commands could be taken
	Since     time.Time // when those are due, at the earliest; zero: whenever
	Workflows []string  // those that this node knows, and their versions: "order", "order 1"
	Turns     Turns     // of tenants, for work
	Later     Turns     // likewise, for scheduled commands

	Whole      bool       // nothing of what follows bounds it, and it asks for pauses that have ended
	Activities []Activity // those of which something can be taken
	Lapsed     time.Time  // since when leases have run out; zero: whenever
	Oldest     time.Time  // since when any work is due; zero: whenever
	Next       time.Time  // after when something is due next
}

// Turns selects the tenants of the round-robin.
type Turns struct {
	After string // the tenant whose turn was last
	Most  int    // how many tenants
}

// Activity is the work of one activity that a poll asks for.
type Activity struct {
	Workflow, Name string
	Since          time.Time // when it is due, at the earliest; zero: whenever
	Room           int       // how much of it
}

// PollResult is the result of a poll, without locks.
type PollResult struct {
	Clock  time.Time   // the database's
	Next   *time.Time  // when something is due next; nil: nothing
	Paused [][2]string // the workflows that are paused, each with its tenant before it
	Ended  [][2]string // likewise: those that are not, while commands are still set aside for them
	Found  []Candidate
}

// Candidate is a command that can be claimed, or a tenant in the round-robin without one (Key "").
type Candidate struct {
	transitions.Ref
	Kind                 string // Lapsed, LaterTurn, Later, Turn or Work
	Attempt              int
	Phase                transitions.Phase
	Workflow, Transition string
	Since                time.Time // when it was due, or its lease ran out
	Pause                string    // which pause holds it, as command.paused says it; "" none
}

// Kinds of candidates.
const (
	Lapsed    = "lapsed"     // its lease has run out
	LaterTurn = "later turn" // it is its tenant's turn, and is scheduled
	Later     = "later"      // it is scheduled, in the order in which those are due
	Turn      = "turn"       // it is its tenant's turn, and is work
	Work      = "work"       // it is work, in the order in which that is due
)

// Poll finds due work. The statement is planned each time: a plan for an empty table would read all of it.
func (f *Flights) Poll(ctx context.Context, q Querier, p PollRequest) (found PollResult, err error) {
	rows, err := q.Query(ctx, f.in(PollSQL), append([]any{pgx.QueryExecModeExec}, p.Params()...)...)
	if err != nil {
		return found, err
	}
	var c Candidate
	_, err = pgx.ForEachRow(rows, []any{&found.Clock, &found.Next, &found.Paused, &found.Ended, &c.Kind, &c.Tenant, &c.Scope, &c.Key,
		&c.Attempt, &c.Phase, &c.Workflow, &c.Transition, &c.Since, &c.Pause}, func() error {
		if c.Tenant != "" {
			found.Found = append(found.Found, c)
		}
		return nil
	})
	return found, err
}

// Params are the parameters of PollSQL.
func (p *PollRequest) Params() []any {
	n := len(p.Activities)
	workflows, names, since, room := make([]string, n), make([]string, n), make([]time.Time, n), make([]int64, n)
	for i, a := range p.Activities {
		workflows[i], names[i], since[i], room[i] = a.Workflow, a.Name, a.Since, int64(a.Room)
	}
	return []any{p.Now, int64(p.Scheduled), int64(p.Works), append([]string{}, p.Full...), p.Since, p.Workflows, p.Turns.After,
		int64(p.Turns.Most), workflows, names, since, room, p.Lapsed, p.Next, p.Oldest, p.Whole, p.Later.After, int64(p.Later.Most)}
}

// Keys name attempts at commands of one tenant.
type Keys struct {
	scopes, keys []string
	attempts     []int32
	created      []*time.Time
}

// Add adds an attempt.
func (k *Keys) Add(ref transitions.Ref, attempt int) { k.AddOf(ref, attempt, time.Time{}) }

// AddOf is Add with the creation time of the command, which only Held compares; zero means any.
func (k *Keys) AddOf(ref transitions.Ref, attempt int, created time.Time) {
	k.scopes = append(k.scopes, ref.Scope)
	k.keys = append(k.keys, ref.Key)
	k.attempts = append(k.attempts, int32(attempt))
	if created.IsZero() {
		k.created = append(k.created, nil)
	} else {
		k.created = append(k.created, &created)
	}
}

// Claim queues the claim of commands with the attempts as seen. got is called for each claimed command.
func (f *Flights) Claim(b *pgx.Batch, tenant, node string, lease time.Duration, now time.Time, k *Keys, got func(decide.InFlight)) {
	b.Queue(f.in(ClaimSQL), tenant, node, lease.Microseconds(), now, k.scopes, k.keys, k.attempts).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			claimed, err := ScanClaim(rows, tenant)
			if err != nil {
				return err
			}
			got(claimed)
		}
		return rows.Err()
	})
}

// ScanClaim reads a row of ClaimSQL.
func ScanClaim(row pgx.CollectableRow, tenant string) (decide.InFlight, error) {
	f := decide.InFlight{Ref: transitions.Ref{Tenant: tenant}}
	var fingerprint []byte
	var due *time.Time
	var unsure *bool
	err := row.Scan(&f.Scope, &f.Key, &fingerprint, &f.Phase, &f.Workflow, &f.Transition, &f.Instance, &f.Actor, &f.Request,
		&f.Attempt, &f.Failures, &f.CancelledBy, &f.CreatedAt, &f.TakenFrom, &unsure, &f.Definition, &f.Data, &due, &f.Paused)
	copy(f.Fingerprint[:], fingerprint)
	f.CreatedAt = f.CreatedAt.UTC()
	if due != nil {
		f.RunAt = *due
	}
	if unsure != nil {
		f.Unsure, f.Nothing = *unsure, !*unsure
	}
	return f, err
}

// Note is an update of a lease: it is extended, or the command is released.
type Note struct {
	*decide.InFlight
	Progress string       // the newest report, JSON; "" none
	Back     *decide.Back // nil: it goes on
	At       time.Time    // when one that is given back is due; zero where it is stuck
}

// Keep queues updates of leases. written is called for every update that was written, with its index and the actor who requested a stop, or
// "".
func (f *Flights) Keep(b *pgx.Batch, tenant, node string, lease time.Duration, now time.Time, list []Note, written func(i int, by string)) {
	n := len(list)
	var k Keys
	reports, statuses, messages, reasons := make([]*string, n), make([]*string, n), make([]*string, n), make([]*string, n)
	times, dues, failures := make([]*time.Time, n), make([]*time.Time, n), make([]int32, n)
	knew, unsure, untried := make([]bool, n), make([]*bool, n), make([]bool, n)
	requests := make([]*string, n)
	for i := range list {
		n := &list[i]
		k.Add(n.Ref, n.Attempt)
		reports[i], knew[i] = orNull(n.Progress), n.CancelledBy != ""
		if n.Back == nil {
			continue
		}
		statuses[i], messages[i], reasons[i] = orNull(string(n.Back.Status)), orNull(n.Back.Failure), orNull(n.Back.Stuck)
		times[i], dues[i], requests[i] = orNull(n.At), orNull(n.RunAt), orNull(string(n.Back.Request))
		if n.Back.Failed {
			failures[i] = 1
		}
		if n.Back.Unsure || n.Back.None {
			unsure[i] = &n.Back.Unsure
		}
		untried[i] = !n.Back.Failed && !n.Back.Unsure && n.Back.Stuck == ""
	}
	b.Queue(f.in(KeepSQL), tenant, node, k.scopes, k.keys, k.attempts, now, lease.Microseconds(),
		reports, statuses, times, failures, messages, reasons, knew, unsure, untried, dues, requests).Query(func(rows pgx.Rows) error {
		var ord int
		var by string
		_, err := pgx.ForEachRow(rows, []any{&ord, &by}, func() error {
			written(ord-1, by)
			return nil
		})
		return err
	})
}

// orNull is nil for the zero value.
func orNull[V comparable](v V) *V {
	if zero(v) {
		return nil
	}
	return &v
}

// Held queues a query for which leases the node holds. held is called with their indexes.
func (f *Flights) Held(b *pgx.Batch, tenant, node string, k *Keys, held func(i int)) {
	b.Queue(f.in(HeldSQL), tenant, node, k.scopes, k.keys, k.attempts, k.created).Query(func(rows pgx.Rows) error {
		var ord int
		_, err := pgx.ForEachRow(rows, []any{&ord}, func() error {
			held(ord - 1)
			return nil
		})
		return err
	})
}

// Cancel requests that a command stops, and reports whether it was the first request. phase is the one before, "" for a completed command.
// It waits for a lock on the row, and returns pgx.ErrNoRows for an unknown command.
func (f *Flights) Cancel(ctx context.Context, tx pgx.Tx, ref transitions.Ref, by string, now time.Time) (
	phase transitions.Phase, asked bool, err error,
) {
	err = tx.QueryRow(ctx, f.in(CancelSQL), ref.Tenant, ref.Scope, ref.Key, by, now).Scan(&phase, &asked)
	return phase, asked, err
}
