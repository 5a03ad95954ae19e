package relay

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/workflow"
)

// register makes a sink known to the database, and says where it begins if it is
// new.
func (r *Relay) register(ctx context.Context, s *Sink) error {
	var cut int64
	err := pgx.BeginFunc(ctx, r.config.Pool, func(tx pgx.Tx) error {
		made, err := tx.Exec(ctx, r.sql.register, s.Name, s.Tenants)
		switch {
		case err != nil:
		case made.RowsAffected() == 0:
			_, err = tx.Exec(ctx, r.sql.restrict, s.Name, s.Tenants)
		case s.FromNow:
			_, err = tx.Exec(ctx, r.sql.begin, s.Name)
		default:
			made, err = tx.Exec(ctx, r.sql.oldest, s.Name, s.Tenants)
			cut = made.RowsAffected()
		}
		return err
	})
	if err != nil {
		return &workflow.Error{Code: workflow.Unavailable, Message: "the sinks could not be registered; try again", Cause: err}
	}
	if cut > 0 {
		r.config.Log.Warn("a new sink does not get the events that retention has removed; it begins with the oldest that are there",
			"sink", s.Name, "tenants", cut)
	}
	return nil
}

// seen is how a sink stands, as a look saw it.
type seen struct {
	name     string
	token    int64
	revision int64
	paused   bool
	free     bool // nobody holds it
	kept     bool // our lease was prolonged
	behind   []behind
}

// look finds out how the sinks stand, prolongs the leases, and takes over what
// nobody holds. It is the only query of a node at rest, for all its sinks.
func (r *Relay) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	sent := time.Now()
	held := r.held()
	list, err := r.ask(ctx, held)
	if err != nil {
		return err
	}
	var free []*seen
	for _, s := range list {
		t := held[s.name]
		switch {
		case t != nil:
			t.hear(func(n *tidings) {
				n.lost = n.lost || s.token != t.token
				n.drain = n.drain || s.paused
				n.revision = s.revision
				n.behind = append(n.behind, s.behind...)
				if s.kept {
					n.until = sent.Add(r.config.Lease)
				}
			})
		case s.free && !s.paused:
			free = append(free, s)
		}
	}
	if len(free) == 0 || r.stops() {
		return nil
	}
	return r.claim(ctx, free)
}

func (r *Relay) stops() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ending
}

// held are the tenures of this node.
func (r *Relay) held() map[string]*tenure {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := make(map[string]*tenure, len(r.tenures))
	for name, t := range r.tenures {
		held[name] = t
	}
	return held
}

// ask asks how the sinks stand. The statement is planned each time, for the
// tables as they are.
func (r *Relay) ask(ctx context.Context, held map[string]*tenure) (map[string]*seen, error) {
	r.stats.looks.Add(1)
	names := make([]string, len(r.config.Sinks))
	tokens, reads := make([]int64, len(names)), make([]bool, len(names))
	begun := time.Now()
	all := !begun.Before(r.readNext)
	for i := range r.config.Sinks {
		names[i] = r.config.Sinks[i].Name
		if t := held[names[i]]; t != nil && !t.lost.Load() { // what is lost is prolonged no more
			tokens[i], reads[i] = t.token, (all || !t.looked) && t.wants.Load()
		}
	}
	rows, err := r.config.Pool.Query(ctx, r.sql.look, pgx.QueryExecModeExec, names, tokens, reads, r.config.Lease.Microseconds())
	if err != nil {
		return nil, err
	}
	list := map[string]*seen{}
	var s seen
	var b behind
	_, err = pgx.ForEachRow(rows, []any{&s.name, &s.token, &s.revision, &s.paused, &s.free, &s.kept, &b.tenant, &b.cursor, &b.head}, func() error {
		if list[s.name] == nil {
			one := s
			list[s.name] = &one
		}
		if b.tenant != "" {
			b.revision = s.revision
			list[s.name].behind = append(list[s.name].behind, b)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, t := range held {
		t.looked = true
	}
	if took := time.Since(begun); all && took > r.config.Every/10 {
		r.readNext = begun.Add(10 * took) // there are very many tenants
	}
	return list, nil
}

// claim takes over sinks, and begins to deliver to those that it gets.
func (r *Relay) claim(ctx context.Context, free []*seen) error {
	names, tokens := make([]string, len(free)), make([]int64, len(free))
	for i, s := range free {
		names[i], tokens[i] = s.name, s.token
	}
	sent := time.Now()
	rows, err := r.config.Pool.Query(ctx, r.sql.claim, pgx.QueryExecModeExec, r.config.Node, names, tokens, r.config.Lease.Microseconds())
	if err != nil {
		return err
	}
	type claimed struct {
		name, taken     string
		token, revision int64
	}
	got, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l claimed, err error) {
		err = row.Scan(&l.name, &l.token, &l.revision, &l.taken)
		return l, err
	})
	if err != nil {
		return err
	}
	for _, l := range got {
		r.stats.claimed.Add(1)
		if l.taken != "" {
			r.stats.takenOver.Add(1)
			r.config.Log.Warn("took a sink over from a node whose lease ran out", "sink", l.name, "from", l.taken)
		} else {
			r.config.Log.Info("delivering to a sink", "sink", l.name)
		}
		i := slices.IndexFunc(r.config.Sinks, func(s Sink) bool { return s.Name == l.name })
		r.begin(&r.config.Sinks[i], l.token, l.revision, sent.Add(r.config.Lease))
	}
	r.Wake() // to see what there is to deliver
	return nil
}
