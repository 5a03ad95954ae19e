package engine_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/schedule"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// report is an instance that schedules create. It has no business key, so a run that happened twice would be two instances.
type report struct {
	At string `json:"at"`
}

func reports() *workflow.Definition[report] {
	keep := func(_ *workflow.Call, d *report, p report) error { *d = p; return nil }
	none := func(*workflow.Call, *report, workflow.None) error { return nil }
	return workflow.Define("report", 1,
		workflow.Start("open", "opened", keep).Role("clerk"),
		workflow.On("close", workflow.From("opened"), "closed", none),
		workflow.On("stop", workflow.From("opened"), "stopped", none).Role("clerk"),
	).Final("closed", "stopped").Roles("clerk")
}

// hand is a clock that a test moves.
type hand struct{ at atomic.Pointer[time.Time] }

func (h *hand) now() time.Time { return *h.at.Load() }

func (h *hand) set(at time.Time) { h.at.Store(&at) }

// at returns a time of 1 January 2026.
func at(hour, minute, second int) time.Time {
	return time.Date(2026, 1, 1, hour, minute, second, 0, time.UTC)
}

// scheduling starts an engine with schedules and a clock that begins at 09:30.
func scheduling(t *testing.T, pool *pgxpool.Pool) (*engine.Engine, *hand) {
	t.Helper()
	h := &hand{}
	h.set(at(9, 30, 0))
	return anotherNode(t, pool, h), h
}

func anotherNode(t *testing.T, pool *pgxpool.Pool, h *hand) *engine.Engine {
	t.Helper()
	return newEngine(t, pool, func(c *engine.Config) {
		c.Workflows, c.Now = []workflow.Source{reports(), schedule.New(nil)}, h.now
	})
}

func plan(spec schedule.Spec, p schedule.Policy) schedule.Plan {
	return schedule.Plan{Spec: spec, Policy: p, Run: schedule.Run{Workflow: "report", Transition: "open", Payload: []byte(`{"at":"{nominal}"}`)}}
}

var everyHour = schedule.Spec{Cron: "0 * * * *"}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return raw
}

var keys atomic.Int64

// ordered is a command on the schedule "nightly", with a key of its own.
func ordered(t *testing.T, transition string, payload any) transitions.Command {
	t.Helper()
	c := transitions.Command{Workflow: schedule.Name, Transition: transition, Actor: "ann", Roles: []string{schedule.Role},
		Key: fmt.Sprint("k", keys.Add(1)), Reason: "the auditors want it"}
	if transition != schedule.Create {
		c.BusinessKey = "nightly"
	}
	if payload != nil {
		c.Payload = asJSON(t, payload)
	}
	return c
}

func create(t *testing.T, e *engine.Engine, p schedule.Plan) {
	t.Helper()
	submit(t, e, ordered(t, schedule.Create, schedule.NewSchedule{Name: "nightly", Plan: p}))
}

// tick moves the clock and waits until the schedule has been processed.
func tick(t *testing.T, e *engine.Engine, h *hand, now time.Time) inspect.Schedule {
	t.Helper()
	h.set(now)
	return settled(t, e, func(s inspect.Schedule) bool { return s.Paused || s.Waiting || s.Next.IsZero() || s.Next.After(now) })
}

func settled(t *testing.T, e *engine.Engine, done func(inspect.Schedule) bool) (s inspect.Schedule) {
	t.Helper()
	await.Eventually(t, "the schedule is processed", func() bool {
		engine.WakeSchedules(e)
		var err error
		s, err = e.Read().Schedule(t.Context(), "", "nightly")
		require.NoError(t, err)
		return done(s) && s.Extra == 0
	})
	return s
}

// opened returns the nominal times of the reports.
func opened(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	return query[string](t, pool, "SELECT coalesce(string_agg(substr(data->>'at', 12, 5), ' ' ORDER BY data->>'at'), '') FROM pawl.instance "+
		"WHERE workflow = 'report'")
}

func TestSchedule_RunsWithAuditRow(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e, h := scheduling(t, pool)
	create(t, e, plan(everyHour, schedule.Policy{}))
	s := tick(t, e, h, at(10, 0, 0))
	assert.Equal(t, "10:00", opened(t, pool))
	require.Len(t, s.Recent, 1)
	run := s.Recent[0]
	assert.Equal(t, "submitted", run.Outcome)
	assert.Equal(t, "2026-01-01T10:00:00Z", run.Key)
	require.Len(t, s.Upcoming, 10)
	assert.Equal(t, at(11, 0, 0), s.Upcoming[0])

	entries, err := e.Read().History(t.Context(), "", run.Instance, 0, 10)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	cause, by := transitions.CauseOf(entries[0].Cause, entries[0].Scope, entries[0].Key)
	assert.Equal(t, transitions.CausedBySchedule, cause)
	assert.Equal(t, "nightly", by)
	assert.Equal(t, transitions.ScheduleActor, entries[0].Actor)
	assert.Equal(t, schedule.ZoneData(), entries[0].Proof, "the version of the time zones")
}

func TestSchedule_ChangesAreCommands(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e, h := scheduling(t, pool)
	c := ordered(t, schedule.Create, schedule.NewSchedule{Name: "nightly", Plan: plan(everyHour, schedule.Policy{Overlap: "allow"})})
	submit(t, e, c)
	assert.True(t, submit(t, e, c).Replayed)
	again := c
	again.Key = "again"
	r, err := e.Submit(t.Context(), again)
	require.NoError(t, err)
	wantCode(t, r.Err(), workflow.AlreadyExists)
	stranger := ordered(t, schedule.Pause, nil)
	stranger.Roles = nil
	_, err = e.Submit(t.Context(), stranger)
	wantCode(t, err, workflow.RoleRequired)

	submit(t, e, ordered(t, schedule.Pause, nil))
	tick(t, e, h, at(11, 10, 0))
	assert.Empty(t, opened(t, pool), "it is paused")
	submit(t, e, ordered(t, schedule.Trigger, nil))
	settled(t, e, func(s inspect.Schedule) bool { return len(s.Recent) == 1 })
	assert.Equal(t, "11:10", opened(t, pool))
	submit(t, e, ordered(t, schedule.Resume, nil))
	tick(t, e, h, at(12, 0, 0))
	assert.Equal(t, "11:10 12:00", opened(t, pool))

	stale := ordered(t, schedule.Change, plan(schedule.Spec{Cron: "30 * * * *"}, schedule.Policy{Overlap: "allow"}))
	stale.IfVersion = 1
	r, err = e.Submit(t.Context(), stale)
	require.NoError(t, err)
	wantCode(t, r.Err(), workflow.VersionConflict)
	stale.IfVersion, stale.Key = 4, "fresh"
	submit(t, e, stale)
	tick(t, e, h, at(13, 0, 0))
	assert.Equal(t, "11:10 12:00 12:30", opened(t, pool))

	submit(t, e, ordered(t, schedule.Backfill, schedule.Span{From: at(9, 0, 0), Until: at(13, 0, 0)}))
	settled(t, e, func(s inspect.Schedule) bool { return s.Version == 6 })
	assert.Equal(t, "09:00 10:00 11:00 11:10 12:00 12:30", opened(t, pool), "by the expression of the time, and not again")

	submit(t, e, ordered(t, schedule.Delete, nil))
	_, err = e.Read().Schedule(t.Context(), "", "nightly")
	wantCode(t, err, workflow.NotFound)
	submit(t, e, ordered(t, schedule.Restore, plan(everyHour, schedule.Policy{})))
	tick(t, e, h, at(14, 0, 0))
	assert.True(t, strings.HasSuffix(opened(t, pool), "12:30 14:00"))
	assert.Equal(t, 8, query[int](t, pool, "SELECT count(*) FROM pawl.audit WHERE workflow = 'schedule' AND actor = 'ann' AND reason IS NOT NULL"))
}

func TestSchedule_RefusesPlans(t *testing.T) {
	t.Parallel()
	e, _ := scheduling(t, database(t))
	for _, p := range []schedule.Plan{
		plan(schedule.Spec{Cron: "61 * * * *"}, schedule.Policy{}), plan(everyHour, schedule.Policy{Missed: "all"}),
		plan(everyHour, schedule.Policy{Cancel: "stop"}),
		{Spec: everyHour, Run: schedule.Run{Workflow: schedule.Name, Transition: schedule.Delete, BusinessKey: "x"}},
	} {
		r, err := e.Submit(t.Context(), ordered(t, schedule.Create, schedule.NewSchedule{Name: "nightly", Plan: p}))
		require.NoError(t, err)
		wantCode(t, r.Err(), workflow.GuardRefused)
	}
}

func TestSchedule_Overlap(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]struct{ open, afterEnd string }{
		"skip": {"10:00", "10:00 13:00"}, "queue_one": {"10:00", "10:00 12:00"}, "queue_all": {"10:00", "10:00 11:00"},
		"allow": {"10:00 11:00 12:00", "10:00 11:00 12:00 13:00"},
	} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			e, h := scheduling(t, pool)
			create(t, e, plan(everyHour, schedule.Policy{Overlap: policy}))
			first := tick(t, e, h, at(10, 0, 0)).Recent[0].Instance
			tick(t, e, h, at(11, 0, 0))
			tick(t, e, h, at(12, 0, 0))
			if policy == "queue_one" || policy == "queue_all" { // the second run comes while the first waits
				h.set(at(12, 0, 2))
				await.Eventually(t, "both wait", func() bool {
					engine.WakeSchedules(e)
					return query[bool](t, pool, "SELECT held_at > '2026-01-01 12:00Z' FROM pawl.schedule")
				})
			}
			assert.Equal(t, want.open, opened(t, pool))
			submit(t, e, transitions.Command{Transition: "close", Instance: first, Key: "close"})
			now := at(13, 0, 0)
			if strings.HasPrefix(policy, "queue") {
				now = at(12, 0, 10)
			}
			h.set(now)
			await.Eventually(t, "the next run is submitted", func() bool {
				engine.WakeSchedules(e)
				return opened(t, pool) == want.afterEnd
			})
		})
	}
}

func TestSchedule_OverlapCancels(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e, h := scheduling(t, pool)
	create(t, e, plan(everyHour, schedule.Policy{Overlap: "cancel", Cancel: "stop"}))
	tick(t, e, h, at(10, 0, 0))
	tick(t, e, h, at(11, 0, 0))
	assert.Equal(t, "10:00 stopped, 11:00 opened", query[string](t, pool,
		"SELECT string_agg(substr(data->>'at', 12, 5) || ' ' || state, ', ' ORDER BY data->>'at') FROM pawl.instance WHERE workflow = 'report'"))
}

func TestSchedule_RefusedRunIsReported(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e, h := scheduling(t, pool)
	p := plan(everyHour, schedule.Policy{})
	p.Run.Payload = []byte(`{"nothing":"like it"}`)
	create(t, e, p)
	s := tick(t, e, h, at(10, 0, 0))
	require.Len(t, s.Recent, 1)
	assert.Equal(t, "refused", s.Recent[0].Outcome)
	assert.Equal(t, string(workflow.InvalidPayload), s.Recent[0].Code)
	assert.Equal(t, at(11, 0, 0), s.Next)
}

// A paused workflow delays the runs of its schedules, and of no other schedule.
func TestSchedule_PausedWorkflowDelaysItsRuns(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e, h := scheduling(t, pool)
	create(t, e, plan(everyHour, schedule.Policy{}))
	require.NoError(t, e.Admin().PauseWorkflow(t.Context(), "", "report", "ann", "a test"))
	h.set(at(10, 0, 0))
	await.Eventually(t, "the run is tried", func() bool {
		engine.WakeSchedules(e)
		return e.Admin().ScheduleStats().Retried > 0
	})
	assert.Empty(t, opened(t, pool))
	require.NoError(t, e.Admin().ResumeWorkflow(t.Context(), "", "report"))
	tick(t, e, h, at(10, 0, 30))
	assert.Equal(t, "10:00", opened(t, pool))
}

// Three nodes hear of every tick at once.
func TestSchedule_NodesSubmitEachRunOnce(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e, h := scheduling(t, pool)
	others := []*engine.Engine{anotherNode(t, pool, h), anotherNode(t, pool, h)}
	const schedules, ticks = 40, 5
	var cs []transitions.Command
	for i := range schedules {
		name := fmt.Sprint("s", i)
		cs = append(cs, transitions.Command{Workflow: schedule.Name, Transition: schedule.Create, Key: name, Roles: []string{schedule.Role},
			Payload: asJSON(t, schedule.NewSchedule{Name: name, Plan: plan(everyHour, schedule.Policy{Overlap: "allow"})})})
	}
	for _, r := range e.SubmitMany(t.Context(), cs) {
		require.NoError(t, r.Err)
	}
	for n := range ticks {
		h.set(at(10+n, 0, 0))
		await.Eventually(t, "all runs are submitted", func() bool {
			for _, node := range append(others, e) {
				engine.WakeSchedules(node)
			}
			return query[int](t, pool, "SELECT count(*) FROM pawl.schedule WHERE next_at <= $1", h.now()) == 0
		})
	}
	assert.Equal(t, schedules*ticks, query[int](t, pool, "SELECT count(*) FROM pawl.instance WHERE workflow = 'report'"))
	assert.Equal(t, schedules*ticks, query[int](t, pool,
		"SELECT count(DISTINCT (scope, key)) FROM pawl.audit WHERE workflow = 'report'"))
}

func TestSchedule_ManyIdleCostOneQueryPerSecond(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `INSERT INTO pawl.schedule (tenant, name, instance, revision, plan, paused, last_at, next_at, due_at)
SELECT 'default', 's' || n, gen_random_uuid(), 1, '{"spec":{"cron":"@daily"},"run":{"workflow":"report","transition":"open"}}', false, now(),
	now() + interval '1 day', now() + interval '1 day' FROM generate_series(1, 100000) n`)
	traced, queries := tracedPool(t, pool)
	newEngine(t, traced, func(c *engine.Config) { c.Workflows = []workflow.Source{reports(), schedule.New(nil)} })
	await.Pass("what was announced is announced; from here on, nothing happens", 1500*time.Millisecond)
	idles(t, pool, queries, 4*time.Second)
}

func TestSchedule_TooMany(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e, _ := scheduling(t, pool)
	exec(t, pool, `INSERT INTO pawl.schedule (tenant, name, instance, revision, plan, paused, last_at)
SELECT 'default', 's' || n, gen_random_uuid(), 1, '{"spec":{"cron":"@daily"},"run":{"workflow":"report","transition":"open"}}', true, now()
FROM generate_series(1, 200000) n`)
	r, err := e.Submit(t.Context(), ordered(t, schedule.Create, schedule.NewSchedule{Name: "nightly", Plan: plan(everyHour, schedule.Policy{})}))
	require.NoError(t, err)
	wantCode(t, r.Err(), workflow.GuardRefused)
	assert.ErrorContains(t, r.Err(), "200000 schedules, which is the maximum")
}

// A node that dies leaves the row as it was after its claim, whether it has submitted the run or not.
func TestSchedule_NodeDiesAtTheTick(t *testing.T) {
	t.Parallel()
	const claimed = `UPDATE pawl.schedule SET last_at = '2026-01-01 09:30Z', next_at = '2026-01-01 10:00Z', due_at = '2026-01-01 10:00:10Z',
	claims = claims + 1, running = NULL, running_key = NULL, recent = NULL`
	for name, submitted := range map[string]bool{"before the submission": false, "after the submission": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			e, h := scheduling(t, pool)
			create(t, e, plan(everyHour, schedule.Policy{}))
			if submitted {
				tick(t, e, h, at(10, 0, 0))
			}
			exec(t, pool, claimed)
			s := tick(t, e, h, at(10, 0, 10))
			assert.Equal(t, "10:00", opened(t, pool))
			require.Len(t, s.Recent, 1)
			assert.Equal(t, "submitted", s.Recent[0].Outcome)
		})
	}
}
