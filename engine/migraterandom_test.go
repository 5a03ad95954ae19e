package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type counter struct {
	N   int       `json:"n"`
	Due time.Time `json:"due,omitzero"`
}

type count struct {
	N int `json:"n"`
}

// randomVersion is a version of a workflow with some of the states a to e, timers of some of three names, and perhaps an activity.
func randomVersion(r *rand.Rand, name string, version int, work func(context.Context) error) *workflow.Definition[counter] {
	var states []workflow.State
	for _, i := range r.Perm(5)[:2+r.IntN(3)] {
		states = append(states, workflow.State(string(rune('a'+i))))
	}
	parts := []workflow.Part[counter]{
		workflow.Start("begin", states[0], func(_ *workflow.Call, d *counter, p count) error { d.N = p.N; return nil }),
		workflow.On("ring", states, workflow.Stay, nothing[counter, workflow.None]),
		workflow.On("end", states, "ended", nothing[counter, workflow.None])}
	for _, s := range states {
		parts = append(parts, workflow.On("to-"+string(s), states, s, nothing[counter, workflow.None]).NotBy("end"))
	}
	if r.IntN(4) > 0 {
		parts = append(parts, workflow.Do("work", states, workflow.State([]string{"busy", "working"}[r.IntN(2)]), states[0],
			claimWork[counter](work), nothing[counter, int]).OrElse(states[0], nothing[counter, workflow.Failure]))
	}
	d := workflow.Define(name, version, parts...).Final("ended").Attr("n", func(c counter) string { return fmt.Sprint(c.N % 3) })
	for _, timer := range []string{"x", "y", "z"} {
		in := states[:r.IntN(len(states)+1)]
		switch {
		case len(in) == 0:
		case r.IntN(2) == 0:
			d.After(timer, in, time.Duration(1+r.IntN(2))*time.Hour, "ring")
		default:
			d.At(timer, in, func(c counter) time.Time { return c.Due }, "ring")
		}
	}
	return d
}

// randomPlan says something about what it may be said of. Much of it is refused.
func randomPlan(r *rand.Rand) *workflow.FromVersionPlan[counter, counter] {
	data := []func(counter) (counter, error){nil,
		func(c counter) (counter, error) { return counter{N: c.N + 1, Due: c.Due}, nil },
		func(c counter) (counter, error) { return counter{N: c.N, Due: noon.AddDate(0, 0, 1)}, nil },
		func(c counter) (counter, error) {
			if c.N%3 == 0 {
				return c, errors.New("a third is refused")
			}
			return c, nil
		},
		func(c counter) (counter, error) {
			if c.N%4 == 0 {
				panic("a quarter")
			}
			return c, nil
		}}[r.IntN(5)]
	p := workflow.FromVersion(1, data)
	for _, s := range "abcde" {
		if r.IntN(3) == 0 {
			p.State(workflow.State(string(s)), workflow.State(string(rune('a'+r.IntN(5)))))
		}
	}
	for _, timer := range []string{"x", "y", "z"} {
		switch r.IntN(5) {
		case 0:
			p.KeepTimer(timer)
		case 1:
			p.RestartTimer(timer)
		case 2:
			p.SetTimer(timer, func(now time.Time, c counter) time.Time { return now.Add(time.Duration(1+c.N) * time.Hour) })
		case 3:
			p.DropTimer(timer)
		}
	}
	if r.IntN(2) == 0 {
		p.Carry("work")
	}
	return p
}

// randomWorkflow is two versions with a plan that both can take.
func randomWorkflow(t *testing.T, r *rand.Rand, name string, work func(context.Context) error) []workflow.Source {
	t.Helper()
	for range 10_000 {
		first, second := randomVersion(r, name, 1, work), randomVersion(r, name, 2, work)
		second.Migrate(randomPlan(r))
		from, err := first.Build()
		require.NoError(t, err)
		to, err := second.Build()
		require.NoError(t, err)
		if _, err := workflow.MigrationOf(from, to); err == nil {
			return []workflow.Source{first, second}
		}
	}
	t.Fatal("no plan was taken")
	return nil
}

// randomInstances are in any state that the first version has: some paused, some at work, some ended.
func randomInstances(t *testing.T, r *rand.Rand, e *engine.Engine, name string, many int) (ids []uuid.UUID) {
	t.Helper()
	w, err := e.Read().Workflow(name, 1)
	require.NoError(t, err)
	for i := range many {
		id := submit(t, e, transitions.Command{Workflow: name, Transition: "begin", Key: fmt.Sprint(i),
			Payload: fmt.Appendf(nil, `{"n":%d}`, r.IntN(12))}).Instance
		ids = append(ids, id)
		for n := range r.IntN(4) {
			inst, err := e.Read().Instance(t.Context(), "", id)
			require.NoError(t, err)
			if able := w.Allowed(inst.State); len(able) > 0 {
				submit(t, e, transitions.Command{Transition: able[r.IntN(len(able))], Key: fmt.Sprint("m-", n), Instance: id})
			}
		}
		if r.IntN(4) == 0 {
			operate(t, e, transitions.Command{Instance: id, Key: "p"}, transitions.Operation{Action: transitions.Pause})
		}
	}
	return ids
}

// foretold is what a dry run says of an instance: what it would be, nil where it stays, and why.
type foretold struct {
	before transitions.Instance
	after  *transitions.Instance
	why    string
	waits  bool
}

func foretell(t *testing.T, e *engine.Engine, id uuid.UUID) (f foretold) {
	t.Helper()
	var err error
	f.before, err = e.Read().Instance(t.Context(), "", id)
	require.NoError(t, err)
	receipt, after, err := e.Admin().DryRunOperation(t.Context(), transitions.Command{Instance: id},
		transitions.Operation{Action: transitions.Migrate, To: 2})
	f.after = after
	if err == nil {
		err = receipt.Err()
	}
	if err != nil {
		f.why, f.waits = workflow.AsError(err).Message, workflow.CodeOf(err) == workflow.MigrationWaits
	}
	return f
}

// Whatever the plan and the instances: a migration does with each what its dry runs have said, of all and of that one.
func TestAMigrationDoesWhatItsDryRunSays(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("the seed is %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	workflows, instances := 6, 10
	if !testing.Short() {
		workflows, instances = 20, 20
	}
	going := make(chan struct{})
	work := func(ctx context.Context) error {
		select {
		case <-going:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	var sources []workflow.Source
	for n := range workflows {
		sources = append(sources, randomWorkflow(t, r, fmt.Sprint("random-", n), work)...)
	}
	pool, clock := database(t), newStill()
	e := newEngine(t, pool, running(sources...), clock.set)
	defer close(going)
	kinds := map[string]int{}
	for n := range workflows {
		name := fmt.Sprint("random-", n)
		require.NoError(t, e.Admin().BeginVersion(t.Context(), name, 1, ""))
		told := map[uuid.UUID]foretold{}
		for _, id := range randomInstances(t, r, e, name, instances) {
			told[id] = foretell(t, e, id)
		}
		p, err := e.Admin().PreviewMigration(t.Context(), name, 1, 2)
		require.NoError(t, err)
		var all inspect.MigrationState
		for _, s := range p.States {
			all.Count, all.Migrated = all.Count+s.Count, all.Migrated+s.Migrated
			all.Waiting, all.Rejected = all.Waiting+s.Waiting, all.Rejected+s.Rejected
		}
		m, err := e.Admin().MigrateInstances(t.Context(), inspect.MigrationRequest{Workflow: name, From: 1, To: 2, PerSecond: 100_000})
		require.NoError(t, err)
		if all.Waiting > 0 {
			eventually(t, "it has looked at all", func() bool {
				m, err = e.Admin().Migration(t.Context(), m.ID)
				require.NoError(t, err)
				return m.Waiting > 0
			})
			_, err := e.Admin().StopMigration(t.Context(), m.ID, "", "it waits")
			require.NoError(t, err)
		} else {
			m = migrated(t, e, m.ID)
		}
		assert.Truef(t, m.Expected == all.Count && m.Migrated == all.Migrated && m.Rejected == all.Rejected && m.Skipped == 0 &&
			(all.Waiting <= 0 || m.Waiting == all.Waiting) && reflect.DeepEqual(byReason(m.Refusals), byReason(p.Refusals)),
			"%s: of all it is said %+v\nand %+v\nit has done %+v", name, p.States, p.Refusals, m)
		for id, f := range told {
			kinds[wantForetold(t, e, id, f)]++
		}
	}
	t.Log(kinds)
	wantIntact(t, e, "")
}

// byReason counts refusals by their state and reason.
func byReason(list []inspect.MigrationRefusal) map[string]int64 {
	found := map[string]int64{}
	for _, r := range list {
		found[string(r.State)+": "+r.Reason] += r.Count
	}
	return found
}

// wantForetold compares an instance with what was said of it, and says what has become of it.
func wantForetold(t *testing.T, e *engine.Engine, id uuid.UUID, f foretold) string {
	t.Helper()
	got, err := e.Read().Instance(t.Context(), "", id)
	require.NoError(t, err)
	want := f.before
	if f.after != nil {
		want = *f.after
	}
	same := got.State == want.State && got.Version == want.Version && got.Definition == want.Definition &&
		string(got.Data) == string(want.Data) && got.Open == want.Open && got.Paused == want.Paused &&
		maps.Equal(got.Attributes, want.Attributes) && reflect.DeepEqual(got.Links, want.Links) &&
		maps.EqualFunc(got.Actors, want.Actors, slices.Equal[[]string])
	assert.Truef(t, same,
		"it was\n%+v with %s\nand is\n%+v with %s\nwant\n%+v with %s (%s)", f.before, f.before.Data, got, got.Data, want, want.Data, f.why)
	switch {
	case f.after != nil:
		return "migrated"
	case f.waits:
		return "waits"
	case !f.before.Open:
		return "has ended"
	}
	return "refused"
}
