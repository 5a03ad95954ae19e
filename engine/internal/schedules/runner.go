package schedules

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/clock"
	"github.com/pawlhq/pawl/internal/kernel/loop"
	"github.com/pawlhq/pawl/schedule"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

const (
	pollEvery  = 20 * time.Second       // without a schedule that is due
	lease      = 10 * time.Second       // of a claim
	budget     = 8 * time.Second        // of the submission of a group, less than the lease
	batch      = 500                    // schedules of a claim
	groups     = 8                      // submitted at once
	waitPoll   = time.Second            // of a schedule whose runs wait for the one before
	retryAfter = 5 * time.Second        // a run that could not be submitted
	contended  = 100 * time.Millisecond // after a poll whose schedules others have locked
	recentRuns = 10                     // of the list
	maxCached  = 10_000                 // specs
)

// Config is what a Runner needs.
type Config struct {
	Table     *Table
	Calendars schedule.Calendars
	Clock     *clock.Clock
	Log       *slog.Logger

	// Submit submits runs and returns one reply for each, in order. It returns when ctx ends.
	Submit func(ctx context.Context, cs []transitions.Command) []transitions.Reply

	// Cancel cancels a command in flight.
	Cancel func(ctx context.Context, ref transitions.Ref) error
}

// Runner submits the runs of schedules.
type Runner struct {
	*loop.Loop
	config Config
	slots  chan struct{}
	work   sync.WaitGroup

	mu    sync.Mutex
	times map[string]*schedule.Times // by the schedule's name in its tenant
	specs map[string]schedule.Spec   // of those
	stats Stats
}

// Stats are counters since the start.
type Stats struct {
	Polls, Claims      int64
	Submitted, Refused int64 // runs
	Missed, Overlapped int64 // decisions to leave runs out
	Retried            int64 // schedules with a run that could not be submitted
}

// New returns a Runner; Start starts it.
func New(c Config) *Runner {
	return &Runner{Loop: loop.New(), config: c, slots: make(chan struct{}, groups), times: map[string]*schedule.Times{},
		specs: map[string]schedule.Spec{}}
}

// Start submits runs until Stop.
func (r *Runner) Start() {
	r.Loop.Start(r.turn, func(context.Context) { r.work.Wait() })
}

// Stats returns the counters.
func (r *Runner) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

func (r *Runner) count(f func(*Stats)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.stats)
}

// turn polls once, and returns the pause until the next poll.
func (r *Runner) turn(ctx context.Context) time.Duration {
	r.count(func(s *Stats) { s.Polls++ })
	pause, err := r.poll(ctx)
	if err != nil && ctx.Err() == nil {
		r.config.Log.Warn("cannot poll for due schedules; the node tries again in a second", "error", err)
		return time.Second
	}
	return pause
}

func (r *Runner) poll(ctx context.Context) (time.Duration, error) {
	asking, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	at, ok, err := r.config.Table.next(asking)
	now := r.config.Clock.Now()
	if err != nil || !ok || at.After(now) {
		return min(pollEvery, cmp.Or(max(at.Sub(now), time.Millisecond), pollEvery)), err
	}
	for {
		select {
		case r.slots <- struct{}{}:
		case <-ctx.Done():
			return 0, nil
		}
		now := r.config.Clock.Now()
		list, err := r.config.Table.claim(asking, now, lease, batch)
		if err != nil || len(list) == 0 {
			<-r.slots
			return contended, err
		}
		r.count(func(s *Stats) { s.Claims += int64(len(list)) })
		r.work.Go(func() {
			defer func() { <-r.slots }()
			r.process(context.WithoutCancel(ctx), list, now)
		})
		if len(list) < batch {
			return 0, nil
		}
	}
}

// process decides, submits and records the runs of claimed schedules.
func (r *Runner) process(ctx context.Context, list []*row, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	jobs := make([]*job, 0, len(list))
	var commands []transitions.Command
	for _, s := range list {
		j := r.decide(s, now)
		if j.step.Cancel {
			r.cancelRunning(ctx, s)
		}
		j.first = len(commands)
		commands = append(commands, j.commands...)
		jobs = append(jobs, j)
	}
	var replies []transitions.Reply
	if len(commands) > 0 {
		replies = r.config.Submit(ctx, commands)
	}
	written := make([]progress, len(jobs))
	for i, j := range jobs {
		written[i] = j.progress(replies[j.first:j.first+len(j.commands)], now)
		r.tally(j, &written[i])
	}
	writing, stop := context.WithTimeout(context.WithoutCancel(ctx), budget)
	defer stop()
	if err := r.config.Table.advance(writing, written); err != nil {
		r.config.Log.Warn("cannot record the runs of schedules; another poll repeats them with the same keys", "error", err)
	}
}

// job is the work on one claimed schedule.
type job struct {
	*row
	times    *schedule.Times // nil: the program cannot compute them
	step     schedule.Step
	runs     []extra // the runs of the commands
	commands []transitions.Command
	first    int // of the replies
}

func (r *Runner) decide(s *row, now time.Time) *job {
	j := &job{row: s}
	var err error
	if j.times, err = r.timesOf(s); err != nil {
		r.config.Log.Error("this node cannot compute the times of a schedule", "tenant", s.Tenant, "schedule", s.Name, "error", err)
		return j
	}
	j.runs = s.Extra
	j.step = schedule.Step{State: s.State}
	if !s.Paused {
		j.step = j.times.Step(s.Plan.Policy, s.Name, s.State, s.IsRunning, now)
	}
	for _, nominal := range j.step.Run {
		j.runs = append(j.runs, extra{schedule.Key(nominal), nominal})
	}
	for _, run := range j.runs {
		c := s.Plan.Run.At(run.At, s.Plan.Spec.Zone)
		j.commands = append(j.commands, transitions.Command{Tenant: s.Tenant, Key: run.Key, Workflow: c.Workflow, Transition: c.Transition,
			BusinessKey: c.BusinessKey, Payload: c.Payload, Actor: transitions.ScheduleActor, Roles: []string{transitions.AnyRole},
			Options: transitions.Options{Scope: transitions.ScheduleScope(s.Name), Proof: schedule.ZoneData()}})
	}
	return j
}

// timesOf returns the times of a schedule, which it keeps.
func (r *Runner) timesOf(s *row) (*schedule.Times, error) {
	key := s.Tenant + "\x00" + s.Name
	r.mu.Lock()
	known, spec := r.times[key], r.specs[key]
	r.mu.Unlock()
	if known != nil && spec.Equal(s.Plan.Spec) {
		return known, nil
	}
	times, err := s.Plan.Spec.Times(r.config.Calendars)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.times) >= maxCached {
		clear(r.times)
		clear(r.specs)
	}
	r.times[key], r.specs[key] = times, s.Plan.Spec
	return times, nil
}

// cancelRunning ends the run before: its command in flight, and its instance with the transition of the policy.
func (r *Runner) cancelRunning(ctx context.Context, s *row) {
	scope := transitions.ScheduleScope(s.Name)
	err := r.config.Cancel(ctx, transitions.Ref{Tenant: s.Tenant, Scope: scope, Key: s.RunningKey})
	if err == nil && s.Plan.Policy.Cancel != "" {
		reply := r.config.Submit(ctx, []transitions.Command{{Tenant: s.Tenant, Key: "cancel " + s.RunningKey, Workflow: s.Plan.Run.Workflow,
			Transition: s.Plan.Policy.Cancel, Instance: *s.Running, Actor: transitions.ScheduleActor, Roles: []string{transitions.AnyRole},
			Options: transitions.Options{Scope: scope, Proof: schedule.ZoneData()}}})[0]
		if err = reply.Err; err == nil {
			err = reply.Receipt.Err()
		}
	}
	if err != nil {
		r.config.Log.Warn("the run before could not be cancelled", "tenant", s.Tenant, "schedule", s.Name, "key", s.RunningKey, "error", err)
	}
}

// progress returns what the replies have changed.
func (j *job) progress(replies []transitions.Reply, now time.Time) progress {
	p := progress{row: j.row, state: j.step.State, next: j.step.Next, recent: j.Recent, extraIsDone: true}
	if j.times == nil {
		p.state, p.due, p.extraIsDone = j.State, now.Add(retryAfter), false
		return p
	}
	if !j.Paused && !p.next.IsZero() {
		p.due = p.next.Add(j.times.Delay(j.Name, p.next))
	}
	if j.step.Wait {
		p.due = now.Add(waitPoll)
	}
	if j.step.Skipped != "" {
		p.add(inspect.ScheduleRun{Nominal: j.step.SkippedTo, From: unless(j.step.SkippedFrom, j.step.SkippedTo), At: now, Outcome: j.step.Skipped})
	}
	for i, reply := range replies {
		run := inspect.ScheduleRun{Nominal: j.runs[i].At, At: now, Outcome: "submitted", Key: j.runs[i].Key, Zones: schedule.ZoneData()}
		err := reply.Err
		if err == nil {
			run.Instance, err = reply.Receipt.Instance, reply.Receipt.Err()
		}
		switch code := workflow.CodeOf(err); {
		case err == nil:
			if i >= len(j.Extra) {
				p.running, p.runningKey = run.Instance, run.Key
			}
		case reply.Err != nil && code.Info().Retry:
			p.state, p.due, p.extraIsDone = j.State, now.Add(retryAfter), false
			if !j.Paused {
				p.next = j.times.Next(j.State.Last)
			}
		case code == workflow.KeyReused || code == workflow.KeyExpired: // an earlier plan has submitted it
		default:
			run.Outcome, run.Code = "refused", string(code)
		}
		if !p.extraIsDone {
			break
		}
		p.add(run)
	}
	return p
}

// add adds a run to the list and removes an earlier report about it.
func (p *progress) add(run inspect.ScheduleRun) {
	list := slices.DeleteFunc(slices.Clone(p.recent), func(r inspect.ScheduleRun) bool { return run.Key != "" && r.Key == run.Key })
	p.recent = slices.Insert(list, 0, run)
	p.recent = p.recent[:min(len(p.recent), recentRuns)]
}

// tally counts what a step has come to.
func (r *Runner) tally(j *job, p *progress) {
	r.count(func(s *Stats) {
		switch {
		case !p.extraIsDone:
			s.Retried++
			return
		case j.step.Skipped == "missed":
			s.Missed++
		case j.step.Skipped != "":
			s.Overlapped++
		}
		for _, run := range p.recent[:min(len(j.commands), len(p.recent))] {
			if run.Outcome == "refused" {
				s.Refused++
			}
		}
		s.Submitted += int64(len(j.commands))
	})
}

func unless(t, other time.Time) time.Time {
	if t.Equal(other) {
		return time.Time{}
	}
	return t
}

// Upcoming returns the nominal times of the next runs of a schedule.
func Upcoming(s *inspect.Schedule, c schedule.Calendars, n int) (list []time.Time) {
	times, err := s.Plan.Spec.Times(c)
	if err != nil || s.Paused {
		return nil
	}
	for next := s.Next; !next.IsZero() && len(list) < n; next = times.Next(next) {
		list = append(list, next)
	}
	return list
}
