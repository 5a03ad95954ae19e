package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Instances bring along overdue timers, activities that return to an earlier state, and keys.

type appointment struct {
	At   time.Time `json:"at"`
	Rung int       `json:"rung"`
}

type arranged struct {
	At time.Time `json:"at"`
}

// appointments have a timer for each rule of a plan; what timers do counts. late is added to the time of the data.
func appointments(version int, state workflow.State, late time.Duration, plans ...workflow.Plan[appointment],
) *workflow.Definition[appointment] {
	in, at := workflow.From(state), func(a appointment) time.Time { return a.At }
	return workflow.Define("appointment", version,
		workflow.Start("arrange", state, func(_ *workflow.Call, d *appointment, p arranged) error { d.At = p.At; return nil }),
		workflow.On("ring", in, workflow.Stay, func(_ *workflow.Call, d *appointment, _ workflow.None) error { d.Rung++; return nil }),
		workflow.On("end", in, "ended", nothing[appointment, workflow.None])).Final("ended").
		After("same", in, time.Hour, "ring").After("kept", in, time.Hour, "ring").After("again", in, 24*time.Hour, "ring").
		At("from-data", in, at, "ring").At("later", in, func(a appointment) time.Time { return a.At.Add(late) }, "ring").
		At("said", in, at, "ring").Migrate(plans...)
}

// A timer that an import found overdue does what the plan says: what remains is what the import has left it, computed anew is the time of
// the new version, and what has passed is told before it fires.
func TestTimersOfAnImportGoOnAsThePlanSays(t *testing.T) {
	t.Parallel()
	pool, clock := database(t), newStill()
	plan := workflow.FromVersion[appointment, appointment](1, nil).State("open", "waiting").KeepTimer("kept").RestartTimer("again").
		SetTimer("said", func(now time.Time, a appointment) time.Time { return a.At.Add(-time.Hour) })
	e := newEngine(t, pool, running(appointments(1, "open", 0), appointments(2, "waiting", time.Minute, plan)), clock.set)
	require.NoError(t, e.Admin().BeginVersion(t.Context(), "appointment", 1, ""))
	begun := clock.Now()
	year := begun.AddDate(-1, 0, 0).Truncate(time.Second)
	r := submit(t, e, transitions.Command{Workflow: "appointment", Transition: "arrange", Key: "1",
		Payload: fmt.Appendf(nil, `{"at":%q}`, year.Format(time.RFC3339)), Options: transitions.Options{HappenedAt: year}})
	grace := begun.Add(time.Hour)
	due := func() map[string]time.Time {
		found := map[string]time.Time{}
		rows, err := pool.Query(t.Context(), `SELECT split_part(scope, ':', 4), run_at FROM pawl.command
			WHERE instance = $1 AND starts_with(scope, 'pawl:timer') AND phase IS NOT NULL`, r.Instance)
		require.NoError(t, err)
		defer rows.Close()
		for rows.Next() {
			var name string
			var at time.Time
			require.NoError(t, rows.Scan(&name, &at))
			found[name] = at.UTC()
		}
		return found
	}
	names := []string{"again", "from-data", "kept", "later", "said", "same"}
	got := due()
	require.True(t, slices.Equal(slices.Sorted(maps.Keys(got)), names), got)
	for name, at := range due() {
		assert.Truef(t, at.Equal(grace), "%s is due at %s, want %s", name, at, grace)
	}
	clock.skip(10 * time.Minute)
	now := clock.Now()
	p, err := e.Admin().PreviewMigration(t.Context(), "appointment", 1, 2)
	assert.Truef(t, err == nil && len(p.States) == 1 && p.States[0].Migrated == 1 && p.States[0].Overdue == 1, "%+v, %v", p, err)
	dry, _, err := e.Admin().DryRunOperation(t.Context(), transitions.Command{Instance: r.Instance},
		transitions.Operation{Action: transitions.Migrate, To: 2})
	require.NoError(t, err)
	m, err := migrateOne(t, e, r.Instance, "m")
	require.Truef(t, err == nil && m.Err() == nil, "%+v, %v", m, err)
	const overdue = `{"timer":%q,"transition":"ring","due":%q,"fires":%q}`
	fires := now.Format(time.RFC3339Nano)
	told := fmt.Sprintf(`"overdue":[`+overdue+`,`+overdue+`]`, "later", year.Add(time.Minute).Format(time.RFC3339), fires,
		"said", year.Add(-time.Hour).Format(time.RFC3339), fires)
	for _, body := range [][]byte{dry.Body, m.Body} {
		assert.Contains(t, string(body), told, body)
	}
	rung := func(n int) {
		t.Helper()
		eventually(t, fmt.Sprint(n, " timers have fired"), func() bool {
			inst, err := e.Read().Instance(t.Context(), "", r.Instance)
			return err == nil && strings.HasSuffix(string(inst.Data), fmt.Sprintf(`"rung":%d}`, n))
		})
	}
	rung(2)
	want := map[string]time.Time{"from-data": grace, "kept": grace, "same": grace, "again": now.Add(24 * time.Hour)}
	got = due()
	assert.Truef(t, maps.Equal(got, want), "%v, want %v", got, want)
	clock.skip(time.Hour)
	rung(5)
	clock.skip(24 * time.Hour)
	rung(6)
	wantIntact(t, e, "")
}

// calls is a version in which an attempt that fails goes back to where it came from; later is the second of its states.
func calls(version int, later workflow.State, call func(context.Context) error, plans ...workflow.Plan[letterData],
) *workflow.Definition[letterData] {
	return workflow.Define("claim", version,
		workflow.Start("file", "open", nothing[letterData, filed]),
		workflow.On("put-off", workflow.From("open"), later, nothing[letterData, workflow.None]),
		workflow.On("call-off", workflow.From("calling"), later, nothing[letterData, workflow.None]),
		workflow.Do("call", workflow.From("open", later), "calling", "reached", claimWork[letterData](call), nothing[letterData, int]).
			OrElse(workflow.Stay, func(_ *workflow.Call, d *letterData, _ workflow.Failure) error { d.Texts++; return nil })).
		Final("reached").Migrate(plans...)
}

// An attempt is in flight whose instance returns to a state that the new version renames. It ends by the old version first, even if the
// instance has moved on.
func TestMigration_BackToRenamedState(t *testing.T) {
	t.Parallel()
	pool := database(t)
	going, goOn := make(chan struct{}, 10), make(chan struct{})
	call := func(ctx context.Context) error {
		going <- struct{}{}
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return workflow.Final(errors.New("nobody answers"))
	}
	e := bothClaims(t, pool, calls(1, "waiting", call),
		calls(2, "later", call, workflow.FromVersion[letterData, letterData](1, nil).State("waiting", "later")))
	const all = 3 // open, waiting, and one that goes on without
	var ids []uuid.UUID
	var begin []transitions.Receipt
	for i := range all {
		ids = append(ids, file(t, e, "", fmt.Sprint(i), 1).Instance)
		if i > 0 {
			submit(t, e, onClaim(ids[i], "put-off", "put-off"))
		}
		begin = append(begin, submit(t, e, onClaim(ids[i], "call", "call")))
		<-going
	}
	m := begun(t, e, 1000)
	eventually(t, "all wait", func() bool {
		now, err := e.Admin().Migration(t.Context(), m.ID)
		return err == nil && now.Waiting == all
	})
	submit(t, e, onClaim(ids[2], "call-off", "call-off"))
	r, err := migrateOne(t, e, ids[2], "m")
	assert.Truef(t, err == nil && r.Err() == nil, "%+v, %v", r, err)
	close(goOn)
	m = migrated(t, e, m.ID)
	assert.Truef(t, m.Migrated == 2 && m.Rejected+m.Skipped == 0, "%+v", m)
	for i, want := range []workflow.State{"open", "later", "later"} {
		r, err := e.Await(t.Context(), transitions.Ref{Scope: begin[i].Record.Scope, Key: "call"})
		assert.Truef(t, err == nil && r.Err() != nil, "%d: %+v, %v", i, r, err)
		again := submit(t, e, onClaim(ids[i], "call", "again"))
		r, err = e.Await(t.Context(), transitions.Ref{Scope: again.Record.Scope, Key: "again"})
		assert.Truef(t, err == nil && workflow.CodeOf(r.Err()) == workflow.ActivityFailed, "%d: %+v, %v", i, r, err)
		inst, err := e.Read().Instance(t.Context(), "", ids[i])
		assert.Truef(t, err == nil && inst.Definition == 2 && inst.State == want, "%d: %+v, %v", i, inst, err)
	}
	wantIntact(t, e, "")
}
