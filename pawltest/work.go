package pawltest

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// lease is how long a command stays with a worker that is lost, as on an engine with its defaults.
const lease = 30 * time.Second

// most bounds what may happen without the clock moving.
const most = 10_000

// Settle does what is due now, and what that makes due: accepted activities run, in this goroutine, timers fire, undos run. Whatever fails
// and is to be tried again waits for the clock.
func (s *Sim) Settle() {
	s.t.Helper()
	for range most {
		c := s.due()
		if c == nil || c.dueAt().After(s.now) {
			return
		}
		s.work(c)
	}
	s.t.Fatalf("pawltest: %d commands were due at %s, and there are more: does a timer without a wait cause itself?", most, s.now)
}

// Skip moves the clock on by d. On the way it stops wherever something is due and does it, in order: timers, scheduled commands, retries,
// takeovers from lost workers.
func (s *Sim) Skip(d time.Duration) {
	s.t.Helper()
	if d < 0 {
		s.t.Fatalf("pawltest: the clock does not go back")
	}
	target := s.now.Add(d).Truncate(time.Microsecond)
	s.Settle()
	for {
		c := s.due()
		if c == nil || c.dueAt().After(target) {
			break
		}
		s.now = c.dueAt()
		s.Settle()
	}
	s.now = target
}

// Await moves the clock on until the command of the receipt is finished, and
// returns its answer. It fails the test where the command waits for an operator.
func (s *Sim) Await(r transitions.Receipt) transitions.Receipt {
	s.t.Helper()
	if r.Record == nil {
		return r
	}
	var of *command
	for _, c := range s.commands {
		if c.Scope == r.Record.Scope && c.Key == r.Record.Key && c.Instance == r.Instance {
			of = c
		}
	}
	if of == nil {
		s.t.Fatalf("pawltest: this run has no command %s %s", r.Record.Scope, r.Record.Key)
	}
	for range most {
		s.Settle()
		if !of.InFlight() {
			return transitions.Receipt{Status: of.Code, Instance: of.Instance, Version: of.Version, Position: of.Position,
				Body: transitions.WithPosition(of.Body, of.Position)}
		}
		if of.Stuck != "" {
			s.t.Fatalf("pawltest: command %s waits for an operator (%s): %s", of.Key, of.Stuck, of.Failure)
		}
		next := s.due()
		if next == nil {
			break // it is under way, and its own activity waits for it
		}
		s.now = next.dueAt()
	}
	s.t.Fatalf("pawltest: command %s does not end", of.Key)
	return transitions.Receipt{}
}

// LoseWorker loses the worker of the next attempt: its activity runs and has its effect, but its outcome is lost. Another worker takes over
// when the lease has expired, 30 seconds later. Called n times, it loses n workers.
func (s *Sim) LoseWorker() { s.lose++ }

// due is the command that is due first, or nil.
func (s *Sim) due() (first *command) {
	for _, c := range s.flying {
		at := c.dueAt()
		if at.IsZero() || s.held(c) {
			continue
		}
		if first == nil || at.Before(first.dueAt()) || at.Equal(first.dueAt()) && c.number < first.number {
			first = c
		}
	}
	return first
}

// held reports whether a command waits for the end of the instance's pause.
func (s *Sim) held(c *command) bool {
	inst := s.instances[address{c.tenant, c.Instance}]
	return c.Phase == transitions.Scheduled && c.CancelledBy == "" && inst != nil && inst.Paused
}

// resume makes due what the pause of an instance has held, in the order in which it was due before.
func (s *Sim) resume(tenant string, instance uuid.UUID) {
	var list []*command
	for _, c := range s.flying {
		if c.tenant == tenant && c.Instance == instance && c.Phase == transitions.Scheduled && !c.RunAt.IsZero() && !c.RunAt.After(s.now) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *command) int { return b.RunAt.Compare(a.RunAt) })
	for n, c := range list {
		c.RunAt, c.UpdatedAt = s.now.Add(-time.Duration(n+1)*time.Microsecond), s.now
		c.Attempt = max(c.Attempt, 1) // nobody was to take it, so it is not late
		c.Revision++
	}
}

// dueAt returns when a command in flight needs a worker: the zero time for never.
func (c *command) dueAt() time.Time {
	switch {
	case c.Stuck != "", c.stop != nil: // an activity is under way that calls us
		return time.Time{}
	case c.Status == transitions.Processing:
		return c.LockedUntil
	}
	return c.RunAt
}

// work claims a command and does what there is to do.
func (s *Sim) work(c *command) {
	taken, due := "", c.RunAt
	if c.Status == transitions.Processing {
		taken = c.ClaimedBy
		c.Failures++
		c.Failure = "the worker was lost: the lease of " + taken + " ran out"
		c.unsure, c.none = true, false
	}
	c.Status, c.ClaimedBy, c.RunAt = transitions.Processing, "pawltest", time.Time{}
	c.ClaimedAt, c.LockedUntil, c.UpdatedAt = s.now, s.now.Add(lease), s.now
	c.Attempt++
	c.Revision++
	f := decide.FlightOf(&c.Record, c.tenant)
	f.TakenFrom, f.Unsure, f.Nothing, f.RunAt = taken, c.unsure, c.none, due
	if inst := s.instances[address{c.tenant, c.Instance}]; inst != nil {
		f.Definition, f.Data, f.Paused = inst.Definition, inst.Data, inst.Paused
	}
	var v decide.Verdict
	lost := false
	if f.Phase == transitions.Scheduled {
		v = s.decide(c, f)
	} else {
		v, lost = s.attempt(c, f)
	}
	if lost {
		return
	}
	if v.Outcome != nil {
		v = s.end(f, *v.Outcome)
	}
	if v.Back != nil {
		// Release the command to another worker, or to an operator. The delay is the longest of the policy, so that every run is the same.
		// knew: it was asked to stop before its claim; one that was asked since is due at once, to end.
		knew := f.CancelledBy != ""
		c.Status, c.LockedUntil, c.Stuck, c.UpdatedAt = v.Back.Status, time.Time{}, v.Back.Stuck, s.now
		c.Revision++
		c.unsure, c.none = c.unsure || v.Back.Unsure, !c.unsure && !v.Back.Unsure && (c.none || v.Back.None && c.Failures == 0)
		if v.Back.Failed {
			c.Failures++
		}
		if v.Back.Failure != "" {
			c.Failure = v.Back.Failure
		}
		if v.Back.Request != nil {
			c.Request = v.Back.Request
		}
		if v.Back.Stuck == "" {
			c.RunAt = s.now.Add(v.Back.Most).Truncate(time.Microsecond)
		}
		if c.CancelledBy != "" && !knew && c.Phase != transitions.Undoing {
			c.RunAt, c.Stuck = s.now, ""
		}
	}
}

// decide decides a scheduled command.
func (s *Sim) decide(c *command, f *decide.InFlight) decide.Verdict {
	if v, decided := f.BeforeDue(s.workflows.Horizons(f.Workflow).Replay, s.now); decided {
		return v
	}
	versions := s.workflows.Versions(c.Workflow)
	if len(versions) == 0 {
		return f.NotHere()
	}
	p, err := f.Due(versions[0], versions[1:]...)
	if err == nil {
		_, err = s.commit(p)
	}
	return f.AfterDue(err)
}

// end decides the outcome of a command.
func (s *Sim) end(f *decide.InFlight, o decide.Outcome) decide.Verdict {
	p, err := f.Ending(o)
	if err == nil {
		_, err = s.commit(p)
	}
	if err == nil || workflow.CodeOf(err) == workflow.LeaseLost {
		return decide.Verdict{}
	}
	s.t.Logf("pawltest: %s.%s cannot be decided: %v", f.Workflow, f.Transition, err)
	return decide.Undecidable(err)
}

// attempt runs an activity or an undo, once. lost: its outcome is lost.
func (s *Sim) attempt(c *command, f *decide.InFlight) (v decide.Verdict, lost bool) {
	w := s.workflows.Find(f.Workflow, f.Definition)
	if f.Definition == 0 || w == nil {
		return f.NotHere(), false
	}
	step := f.Activity(w)
	if step == nil {
		return f.Left(), false
	}
	work := step.Work
	if v, decided := f.Before(work, s.workflows.Horizons(f.Workflow).Replay, s.now); decided {
		return v, false
	}
	asked, err := f.Asked()
	if err != nil {
		return decide.Undecidable(err), false
	}
	key, err := f.EffectKey()
	if err != nil {
		return decide.Undecidable(err), false
	}
	ctx, cancel := context.WithTimeoutCause(s.t.Context(), work.Timeout, decide.ErrTimeout)
	defer cancel()
	ctx, c.stop = context.WithCancelCause(ctx)
	defer func() {
		c.stop(nil)
		c.stop = nil
	}()
	a := workflow.NewAttempt(workflow.Attempt{Key: key, Number: f.Attempt, Tenant: f.Tenant, Instance: f.Instance, Actor: f.Actor},
		func(progress []byte) { c.Progress = progress })
	// The declared functions, or those in their place.
	use := s.fakes[activity{f.Workflow, f.Transition}]
	if use.do == nil {
		use.do = work.Do
	}
	if use.check == nil {
		use.check = work.Check
	}
	if use.undo == nil {
		use.undo = work.Undo
	}
	t := f.Try(work, decide.Code{
		Do:    func() ([]byte, error) { return use.do(ctx, a, f.Data, asked.Payload) },
		Check: func() ([]byte, bool, error) { return use.check(ctx, a, f.Data, asked.Payload) },
		Undo:  func() error { return use.undo(ctx, a, f.Data, asked.Payload, asked.Result) },
	}, func(value any, stack []byte) {
		if _, is := value.(mistake); is {
			panic(value)
		}
		s.t.Logf("pawltest: the activity %s.%s panicked: %v\n%s", f.Workflow, f.Transition, value, stack)
	})
	t.Cause = context.Cause(ctx)
	if s.lose > 0 {
		s.lose--
		return v, true
	}
	return f.After(work, t), false
}
