package engine_test

import (
	"reflect"
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

func TestAnInstanceReadsAsItWasDecided(t *testing.T) {
	t.Parallel()
	pool := database(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("", 3600))
	e := newEngine(t, pool, func(c *engine.Config) { c.Now = func() time.Time { return now } })
	submit(t, e, applied("L-1", 100))
	submit(t, e, on("pay", "L-1", "p-1", 30, ""))
	at := now.UTC().Truncate(time.Microsecond)
	want := transitions.Instance{
		Tenant: "default", ID: loanID("L-1"), Workflow: "loan", Definition: 1, BusinessKey: "L-1", State: "open", Version: 2,
		Data: []byte(`{"customer":"c-1","region":"north","owed":70}`), Attributes: map[string]string{"customer": "c-1", "region": "north"},
		Actors: map[string][]string{"apply": {"ann"}}, Open: true, CreatedAt: at, UpdatedAt: at,
	}
	history, err := e.Read().History(t.Context(), "", want.ID, 0, 10)
	require.Truef(t, err == nil && len(history) == 2, "got %d entries, %v", len(history), err)
	want.Chain = history[1].Hash
	got, err := e.Read().Instance(t.Context(), "", loanID("L-1"))
	assert.Truef(t, err == nil && reflect.DeepEqual(got, want), "got  %+v, %v\nwant %+v", got, err, want)
	byKey, err := e.Read().InstanceByKey(t.Context(), "default", "loan", "L-1")
	assert.Truef(t, err == nil && reflect.DeepEqual(byKey, want), "by its key: got %+v, %v", byKey, err)
	page, err := e.Read().Instances(t.Context(), inspect.Filter{})
	assert.Truef(t, err == nil && len(page.Instances) == 1 && reflect.DeepEqual(page.Instances[0], want), "in a list: got %+v, %v", page, err)
}

func TestReads_NotFound(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t))
	submit(t, e, applied("L-1", 100))
	id := loanID("L-1")
	for _, tenant := range []string{"acme", ""} {
		if tenant == "" {
			id = uuid.New()
		}
		wantCode(t, errOf(e.Read().Instance(t.Context(), tenant, id)), workflow.InstanceNotFound)
		wantCode(t, errOf(e.Read().History(t.Context(), tenant, id, 0, 10)), workflow.InstanceNotFound)
		wantCode(t, errOf(e.Read().Explain(t.Context(), tenant, id, "ann", nil)), workflow.InstanceNotFound)
		wantCode(t, errOf(e.Admin().Verify(t.Context(), tenant, id)), workflow.InstanceNotFound)
		wantCode(t, errOf(e.Submit(t.Context(), transitions.Command{Tenant: tenant, Instance: id, Transition: "pay", Key: "k",
			Payload: []byte(`{"amount":1,"do":""}`)})), workflow.InstanceNotFound)
	}
	wantCode(t, errOf(e.Read().InstanceByKey(t.Context(), "", "loan", "L-2")), workflow.InstanceNotFound)
	wantCode(t, errOf(e.Read().InstanceByKey(t.Context(), "acme", "loan", "L-1")), workflow.InstanceNotFound)
	wantCode(t, errOf(e.Read().InstanceByKey(t.Context(), "", "gift", "L-1")), workflow.WorkflowNotFound)
	wantCode(t, errOf(e.Read().Workflow("gift", 0)), workflow.WorkflowNotFound)
	wantCode(t, errOf(e.Read().Workflow("loan", 2)), workflow.NotOnThisNode)
	wantCode(t, errOf(e.Read().Command(t.Context(), transitions.Ref{Scope: "loan:apply", Key: "apply-L-2"})), workflow.CommandNotFound)
	wantCode(t, errOf(e.Read().Command(t.Context(), transitions.Ref{Tenant: "acme", Scope: "loan:apply", Key: "apply-L-1"})),
		workflow.CommandNotFound)
}

func TestHistoryGoesPageByPage(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t))
	submit(t, e, applied("L-1", 100))
	for _, key := range []string{"a", "b", "c", "d"} {
		submit(t, e, on("pay", "L-1", key, 25, ""))
	}
	var keys []string
	for after := int64(0); ; {
		page, err := e.Read().History(t.Context(), "", loanID("L-1"), after, 2)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, entry := range page {
			assert.Truef(t, entry.Version == after+1 && entry.Position == entry.Version,
				"after %d: version %d at position %d", after, entry.Version, entry.Position)
			after = entry.Version
			keys = append(keys, entry.Key)
		}
	}
	assert.Equal(t, []string{"apply-L-1", "a", "b", "c", "d"}, keys)
	entries, err := e.Read().History(t.Context(), "", loanID("L-1"), 5, 0) // past its end: nothing, and no error
	assert.Truef(t, err == nil && len(entries) == 0, "past the end: %v, %v", entries, err)
}

func TestACommandReadsAsItWasAnswered(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t), func(c *engine.Config) { c.Replay = time.Hour })
	first := submit(t, e, applied("L-1", 100))
	got, err := e.Read().Command(t.Context(), transitions.Ref{Scope: "loan:apply", Key: "apply-L-1"})
	require.NoError(t, err)
	assert.Truef(t, got.Status == transitions.Succeeded && got.Code == 201 && got.Version == 1 && got.Position == first.Position &&
		got.Instance == first.Instance && got.Workflow == "loan" && got.Transition == "apply" && got.Fingerprint != [32]byte{}, "got %+v", got)
	assert.Truef(t, got.ExpiresAt.Sub(got.FinishedAt) == time.Hour && got.CreatedAt.Equal(got.FinishedAt) && got.LockedUntil.IsZero(),
		"got %s, %s, %s", got.CreatedAt, got.FinishedAt, got.ExpiresAt)
	replay, err := got.Receipt(), error(nil)
	assert.Truef(t, err == nil && string(replay.Body) == string(first.Body),
		"it would be replayed as %s, %v; it was %s", replay.Body, err, first.Body)
	r, err := e.Submit(t.Context(), on("pay", "L-1", "too much", 101, ""))
	require.Truef(t, err == nil && r.Refused(), "got %+v, %v", r, err)
	got, err = e.Read().Command(t.Context(), transitions.Ref{Scope: "loan:" + loanID("L-1").String(), Key: "too much"})
	assert.Truef(t, err == nil && got.Status == transitions.FailedFinal && got.Code == 409 && got.Version == 0 && got.Position == 0,
		"refused: got %+v, %v", got, err)
}

func TestVerifyAndHeadAreOfOneTenant(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	for _, tenant := range []string{"", "acme"} {
		for _, number := range []string{"L-1", "L-2"} {
			c := applied(number, 10)
			c.Tenant = tenant
			submit(t, e, c)
		}
	}
	for tenant, want := range map[string]int64{"": 2, "acme": 2, "nobody": 0} {
		head, err := e.Read().Head(t.Context(), tenant)
		assert.Truef(t, err == nil && head == want, "%q: head %d, %v", tenant, head, err)
	}
	exec(t, pool, "UPDATE pawl.audit SET actor = 'eve' WHERE tenant = 'acme' AND instance = $1", transitions.InstanceID("acme", "loan", "L-2"))
	got, err := e.Admin().Verify(t.Context(), "", uuid.Nil)
	assert.Truef(t, err == nil && len(got.Broken) == 0 && got.Entries == 2, "the default tenant: %+v, %v", got, err)
	rows := int64(-1)
	got, err = e.Admin().VerifyWithProgress(t.Context(), "acme", uuid.Nil, func(n int64) { rows = n })
	assert.Truef(t, err == nil && len(got.Broken) == 1 && got.Broken[0].Instance == transitions.InstanceID("acme", "loan", "L-2"),
		"acme: %+v, %v", got, err)
	assert.Truef(t, rows <= 2, "progress says %d rows", rows)
	got, err = e.Admin().Verify(t.Context(), "acme", transitions.InstanceID("acme", "loan", "L-1"))
	assert.Truef(t, err == nil && len(got.Broken) == 0 && got.Entries == 1, "one instance: %+v, %v", got, err)
}
