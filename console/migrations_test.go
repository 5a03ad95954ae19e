package console_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// migration creates a migration that never starts, and returns its id.
func (s *stand) migration() string {
	s.t.Helper()
	var id int64
	require.NoError(s.t, s.connect().QueryRow(s.t.Context(), "INSERT INTO pawl.instance_migration (workflow, from_version, to_version, "+
		"per_second, actor, reason, created_at, expected, next_at) VALUES ('claim', 1, 2, 1, 'ann', 'prices in cents', now(), 1200, "+
		"now() + interval '9 years') RETURNING id").Scan(&id))
	return strconv.FormatInt(id, 10)
}

type parcel struct {
	Weight int `json:"weight"`
}

// parcels are two versions of a workflow; heavy ones stay on the first.
func parcels() (list []workflow.Source) {
	define := func(version int, open workflow.State) *workflow.Definition[parcel] {
		return workflow.Define("parcel", version,
			workflow.Start("fill", open, func(_ *workflow.Call, d *parcel, p parcel) error { *d = p; return nil }),
			workflow.On("ship", workflow.From(open), "shipped", func(*workflow.Call, *parcel, workflow.None) error { return nil })).Final("shipped")
	}
	plan := workflow.FromVersion(1, func(old parcel) (parcel, error) {
		if old.Weight > 100 {
			return parcel{}, workflow.Refuse("it is <too> heavy")
		}
		return old, nil
	}).State("open", "packed")
	return []workflow.Source{define(1, "open"), define(2, "packed").Migrate(plan)}
}

func TestMigrationsPage_Stop(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(c *service.Config) { c.Workflows = append(c.Workflows, parcels()...) })
	require.NoError(t, s.Engine().Admin().BeginVersion(t.Context(), "parcel", 1, ""))
	var heavy uuid.UUID
	for _, weight := range []string{"1", "2", "101"} {
		heavy = s.submit(transitions.Command{Workflow: "parcel", Transition: "fill", Payload: []byte(`{"weight":` + weight + `}`)}).Instance
	}
	chief := s.visitor(s.key("carl", identities["chief"]))
	chief.get("/console/migrations").want(200, "There are none.")
	m, err := s.Engine().Admin().MigrateInstances(t.Context(), inspect.MigrationRequest{Workflow: "parcel", From: 1, To: 2, Actor: "olga",
		Reason: "the <new> boxes", PerSecond: 1000})
	require.NoError(t, err)
	await.Eventually(t, "it has ended", func() bool {
		now, err := s.Engine().Admin().Migration(t.Context(), m.ID)
		return err == nil && !now.EndedAt.IsZero()
	})
	chief.get("/console/migrations").want(200, "2 of about 3", "1 refused by the plan", "it is &lt;too&gt; heavy", "the &lt;new&gt; boxes",
		"<bdi>olga</bdi>", "/console/instances/"+heavy.String(), "ended <time")
	chief.get("/console/workflows").want(200, `href="/console/migrations"`, ">1</a> of", ">2</a> of")
	id := s.migration()
	chief.get("/console/migrations").want(200, "<b>under way</b>", "0 of about 1\u202f200", "/console/migrations/"+id+"/stop")
	chief.get("/console/migrations/"+id+"/stop").want(200, "No more instances are migrated")
	chief.fill("/console/migrations/"+id+"/stop", "reason", "the <rate> is wrong").want(http.StatusSeeOther)
	chief.fill("/console/migrations/"+id+"/stop", "reason", "too late").want(http.StatusSeeOther)
	p := chief.get("/console/migrations").want(200, "stopped <time", "by <bdi>carl</bdi>", "the &lt;rate&gt; is wrong")
	assert.NotContains(t, p.text, "too late", "who asks later changes the reason")
	chief.get("/console/migrations/99/stop").want(404)
	s.visitor(s.key("olga", identities["operator"])).get("/console/migrations").want(403)
}

// A migration is tried, and begun with a rate and a reason; the form that is sent twice begins one.
func TestMigrationsPage_Start(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(c *service.Config) { c.Workflows = append(c.Workflows, parcels()...) })
	require.NoError(t, s.Engine().Admin().BeginVersion(t.Context(), "parcel", 1, ""))
	for _, weight := range []string{"1", "2", "101"} {
		s.submit(transitions.Command{Workflow: "parcel", Transition: "fill", Payload: []byte(`{"weight":` + weight + `}`)})
	}
	chief, olga := s.visitor(s.key("carl", identities["chief"])), s.visitor(s.key("olga", identities["operator"]))
	const plan = "?workflow=parcel&from=1&to=2"
	chief.get("/console/migrations").want(200, `href="/console/migrations/new?from=1&amp;to=2&amp;workflow=parcel"`)
	assert.NotContains(t, chief.get("/console/migrations/new"+plan).want(200, "Try it first").text, `name="rate"`,
		"it can be begun untried")
	chief.get("/console/migrations/new"+plan+"&try=1").want(200, "<bdi>packed</bdi>", "<td>3</td><td>2</td><td>0</td><td>1</td>",
		"it is &lt;too&gt; heavy", `name="rate"`)
	olga.get("/console/migrations/new" + plan + "&try=1").want(403)
	olga.get("/console/migrations/new" + plan).want(403)
	for path, status := range map[string]int{"": 400, "?workflow=parcel&from=x&to=2": 400, "?workflow=nothing&from=1&to=2&try=1": 404,
		"?workflow=parcel&from=2&to=1&try=1": 503, "?workflow=parcel&from=1&to=1&try=1": 400} {
		chief.get("/console/migrations/new" + path).want(status)
	}
	pairs := []string{"workflow", "parcel", "from", "1", "to", "2", "reason", "smaller <boxes>"}
	olga.fill("/console/migrations/new", pairs...).want(403)
	chief.fill("/console/migrations/new", append(pairs, "rate", "much")...).want(400, "not a positive integer",
		"smaller &lt;boxes&gt;", `value="much"`)
	chief.fill("/console/migrations/new", append(pairs, "rate", "9999999")...).want(400, `role="alert"`)
	chief.fill("/console/migrations/new", pairs[:6]...).want(400, "a reason is required", `name="rate"`)
	form := chief.form(append(pairs, "rate", "1000")...)
	first := chief.post("/console/migrations/new", form).want(http.StatusSeeOther).location()
	await.Eventually(t, "it has ended", func() bool {
		list, err := s.Engine().Admin().Migrations(t.Context())
		return err == nil && len(list) == 1 && !list[0].EndedAt.IsZero()
	})
	assert.Equal(t, first, chief.post("/console/migrations/new", form).want(http.StatusSeeOther).location(), "and then")
	if list, err := s.Engine().Admin().Migrations(t.Context()); err != nil || len(list) != 1 || list[0].Reason != "smaller <boxes>" ||
		list[0].Actor != "carl" || list[0].PerSecond != 1000 || list[0].Migrated != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	form.Set("reason", "another")
	chief.post("/console/migrations/new", form).want(422, "the key was used for migration")
}
