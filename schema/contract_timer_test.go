package schema_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type parcel struct {
	Until time.Time `json:"until,omitzero"`
}

// parcels have timers of all kinds.
func parcels() *workflow.Definition[parcel] {
	none := func(*workflow.Call, *parcel, workflow.None) error { return nil }
	return workflow.Define("parcel", 1,
		workflow.Start("post", "posted", none).Or("held"),
		workflow.On("hold", workflow.From("posted"), "held", none),
		workflow.On("note", workflow.From("posted", "held", "dated"), workflow.Stay, none),
		workflow.On("remind", workflow.From("held"), workflow.Stay, none),
		workflow.On("date", workflow.From("posted"), "dated", none),
		workflow.On("lose", workflow.From("posted", "held", "dated", "rushed"), "lost", none),
		workflow.On("rush", workflow.From("posted", "dated"), "rushed", none),
		workflow.On("deliver", workflow.From("posted", "held"), "delivered", none),
	).Final("lost", "delivered").
		After("loss", workflow.From("posted", "held"), 36*time.Hour+time.Minute+1500*time.Millisecond+1499*time.Nanosecond, "lose").
		After("reminder", workflow.From("held"), time.Hour, "remind").
		At("term", workflow.From("dated"), func(p parcel) time.Time { return p.Until }, "lose").
		After("hurry", workflow.From("rushed"), time.Millisecond, "lose")
}

// inSQL executes a transition of a parcel in SQL.
func inSQL(t testing.TB, pool *pgxpool.Pool, id uuid.UUID, version int, transition, state string) {
	t.Helper()
	exec(t, pool, fmt.Sprintf(`SELECT pawl.transition('s', '%[1]s %[2]d', c.attempt, %[2]d, '%[4]s', '{}')
		FROM pawl.claim('s', '%[1]s %[2]d', sha256('x'), 'parcel', '%[3]s', '%[1]s') AS c`, id, version, transition, state))
}

// timers returns the timers of an instance without its id and the time of arming.
func timers(t testing.TB, pool *pgxpool.Pool, id uuid.UUID) string {
	t.Helper()
	rows := ask[string](t, pool, `SELECT coalesce(string_agg((to_jsonb(c) - '{instance,fingerprint,created_at,updated_at,run_at}'::text[]
			|| jsonb_build_object('due', c.run_at - c.updated_at, 'new', c.created_at = c.updated_at,
				'known', c.fingerprint = pawl.fingerprint('parcel', c.transition, '{}', c.instance, c.actor)))::text,
			E'\n' ORDER BY c.scope COLLATE "C"), '')
		FROM pawl.command AS c WHERE c.instance = $1 AND c.scope LIKE 'pawl:timer:%'`, id)
	return strings.ReplaceAll(rows, id.String(), "ID")
}

func TestTransitionArmsTimersLikeEngine(t *testing.T) {
	t.Parallel()
	pool, e := served(t, func(c *engine.Config) { c.Workflows = append(c.Workflows, parcels()) })
	created, err := e.Submit(t.Context(), transitions.Command{Workflow: "parcel", Transition: "post", Key: "p"})
	require.NoError(t, err)
	engines, own := created.Instance, uuid.Must(uuid.NewV7())
	inSQL(t, pool, own, 0, "post", "posted")
	for n, step := range []struct {
		transition, state string
		armed             int
	}{{"note", "posted", 1}, {"hold", "held", 2}, {"note", "held", 2}, {"deliver", "delivered", 0}} {
		got, want := timers(t, pool, own), timers(t, pool, engines)
		assert.Truef(t, got == want && want != "", "before %s:\n%s\nthe engine:\n%s", step.transition, got, want)
		require.NoError(t, errOf(e.Submit(t.Context(), transitions.Command{Workflow: "parcel", Transition: step.transition, Instance: engines,
			Key: fmt.Sprint(n)})))
		inSQL(t, pool, own, n+1, step.transition, step.state)
		for _, id := range []uuid.UUID{own, engines} {
			n := ask[int](t, pool, "SELECT count(*) FROM pawl.command WHERE instance = $1 AND phase = 'scheduled'", id)
			assert.Truef(t, n == step.armed, "after %s %d timers run, want %d", step.transition, n, step.armed)
		}
	}
	verified(t, e)
}

// SQL can leave a state with a timer whose time the workflow computes, but cannot enter it or stay in it.
func TestTransitionRefusesTimersFromData(t *testing.T) {
	t.Parallel()
	pool, e := served(t, func(c *engine.Config) { c.Workflows = append(c.Workflows, parcels()) })
	refuse := func(id uuid.UUID, version int, transition, state string) {
		t.Helper()
		got := refused(t, pool, "0A000", fmt.Sprintf(`SELECT pawl.transition('s', 'refused', c.attempt, %d, '%s', '{}')
			FROM pawl.claim('s', 'refused', sha256('x'), 'parcel', '%s', '%s') AS c`, version, state, transition, id)).Message
		want := fmt.Sprintf(`"%s" has the timer "term", whose time the workflow takes from the data`, transition)
		assert.Truef(t, strings.HasPrefix(got, want), "%s: %q", transition, got)
	}
	own := uuid.Must(uuid.NewV7())
	inSQL(t, pool, own, 0, "post", "posted")
	refuse(own, 1, "date", "dated")
	require.NoError(t, errOf(e.Submit(t.Context(), transitions.Command{Workflow: "parcel", Transition: "date", Instance: own, Key: "d"})))
	refuse(own, 2, "note", "dated")
	inSQL(t, pool, own, 2, "rush", "rushed")
	verified(t, e)
}
