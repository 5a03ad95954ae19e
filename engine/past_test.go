package engine_test

import (
	"reflect"
	"strings"
	"sync/atomic"
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

// noon is when the tests begin: today, as the outbox has partitions for.
var noon = time.Now().UTC().Truncate(time.Minute)

// threeVersions are of the loan L-1: one a minute from noon on, the last settles
// it.
func threeVersions(t testing.TB) *engine.Engine {
	t.Helper()
	var minutes atomic.Int64
	e := newEngine(t, database(t), func(c *engine.Config) {
		c.Now = func() time.Time { return noon.Add(time.Duration(minutes.Load()) * time.Minute) }
	})
	submit(t, e, applied("L-1", 100))
	minutes.Store(1)
	submit(t, e, on("pay", "L-1", "p-1", 30, ""))
	minutes.Store(2)
	submit(t, e, on("pay", "L-1", "p-2", 70, ""))
	return e
}

func past(version int64, state workflow.State, data string) inspect.Past {
	return inspect.Past{
		Tenant: "default", ID: loanID("L-1"), Workflow: "loan", Definition: 1, BusinessKey: "L-1", State: state, Version: version, Newest: 3,
		Data: []byte(data), Open: version < 3, CreatedAt: noon, UpdatedAt: noon.Add(time.Duration(version-1) * time.Minute)}
}

func TestAnInstanceIsAsItWasAtEachVersionAndTime(t *testing.T) {
	t.Parallel()
	e := threeVersions(t)
	for _, want := range []inspect.Past{
		past(1, "open", `{"customer":"c-1","region":"north","owed":100}`),
		past(2, "open", `{"customer":"c-1","region":"north","owed":70}`),
		past(3, "settled", `{"customer":"c-1","region":"north","owed":0}`),
	} {
		got, err := e.Read().InstanceAt(t.Context(), "", loanID("L-1"), want.Version)
		assert.Truef(t, err == nil && reflect.DeepEqual(got, want), "version %d: got %+v, %v\nwant %+v", want.Version, got, err, want)
		for _, after := range []time.Duration{0, time.Second, time.Minute - time.Microsecond} {
			got, err := e.Read().InstanceAsOf(t.Context(), "", loanID("L-1"), want.UpdatedAt.Add(after).In(time.FixedZone("", 3600)))
			assert.Truef(t, err == nil && reflect.DeepEqual(got, want), "%s after version %d: got %+v, %v", after, want.Version, got, err)
		}
	}
	got, err := e.Read().InstanceAsOf(t.Context(), "", loanID("L-1"), noon.AddDate(100, 0, 0))
	assert.Truef(t, err == nil && got.Version == 3, "in a hundred years: version %d, %v", got.Version, err)
}

func TestAsOf_NotFound(t *testing.T) {
	t.Parallel()
	e := threeVersions(t)
	id := loanID("L-1")
	for _, version := range []int64{-1 << 63, -1, 0, 4, 1<<63 - 1} {
		_, err := e.Read().InstanceAt(t.Context(), "", id, version)
		wantCode(t, err, workflow.InstanceNotFound)
		assert.Falsef(t, err != nil && !strings.Contains(err.Error(), "has versions from 1 to 3"), "version %d: %v", version, err)
	}
	for _, at := range []time.Time{{}, noon.Add(-time.Microsecond)} {
		_, err := e.Read().InstanceAsOf(t.Context(), "", id, at)
		wantCode(t, err, workflow.InstanceNotFound)
		assert.Falsef(t, err != nil && !strings.Contains(err.Error(), "has no history at "+at.UTC().Format(time.RFC3339Nano)), "%s: %v", at, err)
	}
	wantCode(t, errOf(e.Read().InstanceAt(t.Context(), "acme", id, 1)), workflow.InstanceNotFound)
	wantCode(t, errOf(e.Read().InstanceAsOf(t.Context(), "", uuid.New(), noon)), workflow.InstanceNotFound)
}

func TestErasedDataIsSaidToBeErased(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	submit(t, e, applied("L-1", 100))
	submit(t, e, on("pay", "L-1", "p-1", 30, ""))
	exec(t, pool, `UPDATE pawl.audit SET data = NULL, data_digest = sha256(convert_to(data::text, 'UTF8')) WHERE version = 1`)
	got, err := e.Read().InstanceAt(t.Context(), "", loanID("L-1"), 1)
	assert.Truef(t, err == nil && got.Erased && got.Data == nil && got.State == "open", "got %+v, %v", got, err)
	got, err = e.Read().InstanceAt(t.Context(), "", loanID("L-1"), 2)
	assert.Truef(t, err == nil && !got.Erased && got.Data != nil, "the next version: got %+v, %v", got, err)
}

// The clocks of two nodes differ a little, and the later version has the earlier
// time.
func TestAsOf_ClocksReversed(t *testing.T) {
	t.Parallel()
	var back atomic.Bool
	e := newEngine(t, database(t), func(c *engine.Config) {
		c.Now = func() time.Time {
			if back.Load() {
				return noon.Add(-time.Millisecond)
			}
			return noon
		}
	})
	submit(t, e, applied("L-1", 100))
	back.Store(true)
	submit(t, e, on("pay", "L-1", "p-1", 30, ""))
	for _, at := range []time.Time{noon.Add(-time.Millisecond), noon, noon.Add(time.Hour)} {
		got, err := e.Read().InstanceAsOf(t.Context(), "", loanID("L-1"), at)
		assert.Truef(t, err == nil && got.Version == 2, "%s: version %d, %v", at, got.Version, err)
	}
}

// intact has every chain of the default tenant checked.
func intact(t testing.TB, e *engine.Engine) {
	t.Helper()
	v, err := e.Admin().Verify(t.Context(), "", uuid.Nil)
	assert.Truef(t, err == nil && len(v.Broken) == 0, "verify: %+v, %v", v.Broken, err)
}

// A change of the instance's row can permit an operator a forbidden transition. Verify reports it before and after that transition.
func TestVerify_RemovedEffects(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	forgive := transitions.Command{Workflow: "loan", Transition: "forgive", BusinessKey: "L-1", Key: "f-1", Actor: "ann",
		Roles: []string{"boss"}, Payload: []byte(`{}`)}
	submit(t, e, applied("L-1", 100))
	submit(t, e, applied("L-2", 100))
	_, err := e.Submit(t.Context(), forgive)
	require.Error(t, err, "who applied may forgive")
	check := func(when string, version int64, says string) {
		t.Helper()
		for _, id := range []uuid.UUID{uuid.Nil, loanID("L-1")} {
			v, err := e.Admin().Verify(t.Context(), "", id)
			assert.Truef(t, err == nil && len(v.Broken) == 1 && v.Broken[0].Instance == loanID("L-1") && v.Broken[0].Version == version &&
				strings.Contains(v.Broken[0].Reason, says), "%s: got %+v, %v", when, v, err)
		}
	}
	exec(t, pool, "UPDATE pawl.instance SET actors = NULL WHERE id = $1", loanID("L-1"))
	check("before", 1, "attributes, actors or effects (in links) are not what its rows say")
	r := submit(t, e, forgive)
	require.False(t, r.Refused(), string(r.Body))
	check("after", 2, "the instance before this transition")
	exec(t, pool, `UPDATE pawl.instance SET actors = '{"apply":["ann"]}' WHERE id = $1`, loanID("L-1"))
	check("with the actors put back", 2, "the instance before this transition")
}

// The command that an instance waits for is in no hash; its rows show it.
func TestVerify_WrongCommand(t *testing.T) {
	t.Parallel()
	pool, e := started(t, with(letters(1, hourly, nil)), func(c *engine.Config) { c.InFlight.Workers = -1 })
	id := submit(t, e, written("w", "x")).Instance
	submit(t, e, posted(id, "p"))
	intact(t, e)
	for _, links := range []string{"NULL", `'{"in_flight":{"transition":"post","scope":"s","key":"other"}}'`,
		`'{"in_flight":{"transition":"write","scope":"s","key":"p"}}'`, `'{"in_flight":{"transition":"post","scope":"pawl:late:x","key":"2"}}'`} {
		exec(t, pool, "UPDATE pawl.instance SET links = "+links)
		v, err := e.Admin().Verify(t.Context(), "", id)
		assert.Truef(t, err == nil && len(v.Broken) == 1 && v.Broken[0].Version == 2 &&
			v.Broken[0].Reason == "the instance's command in flight (in links) is not what its rows say", "%s: got %+v, %v", links, v, err)
	}
}
