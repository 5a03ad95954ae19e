package console_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/await"
	"github.com/pawlhq/pawl/internal/service"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// migration is one that waits for ever, of which no node takes anything: its number.
func (s *stand) migration() string {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.db)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close(s.t.Context()) }()
	var id int64
	if err := conn.QueryRow(s.t.Context(), "INSERT INTO pawl.instance_migration (workflow, from_version, to_version, per_second, actor, "+
		"reason, created_at, expected, next_at) VALUES ('claim', 1, 2, 1, 'ann', 'prices in cents', now(), 1200, "+
		"now() + interval '9 years') RETURNING id").
		Scan(&id); err != nil {
		s.t.Fatal(err)
	}
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

// Whoever operates for all sees how far migrations are and what was refused, and stops one.
func TestMigrationsAreShownAndStopped(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(c *service.Config) { c.Workflows = append(c.Workflows, parcels()...) })
	if err := s.Engine().BeginVersion(t.Context(), "parcel", 1, ""); err != nil {
		t.Fatal(err)
	}
	var heavy uuid.UUID
	for _, weight := range []string{"1", "2", "101"} {
		heavy = s.submit(transitions.Command{Workflow: "parcel", Transition: "fill", Payload: []byte(`{"weight":` + weight + `}`)}).Instance
	}
	chief := s.visitor(s.key("carl", identities["chief"]))
	chief.get("/console/migrations").want(200, "There are none.")
	m, err := s.Engine().MigrateInstances(t.Context(), inspect.MigrationRequest{Workflow: "parcel", From: 1, To: 2, Actor: "olga",
		Reason: "the <new> boxes", PerSecond: 1000})
	if err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "it has ended", func() bool {
		now, err := s.Engine().Migration(t.Context(), m.ID)
		return err == nil && !now.EndedAt.IsZero()
	})
	chief.get("/console/migrations").want(200, "2 of about 3", "1 refused by the plan", "it is &lt;too&gt; heavy", "the &lt;new&gt; boxes",
		"<bdi>olga</bdi>", "/console/instances/"+heavy.String(), "ended <time")
	chief.get("/console/workflows").want(200, `href="/console/migrations"`, ">1</a> of", ">2</a> of")
	id := s.migration()
	chief.get("/console/migrations").want(200, "<b>under way</b>", "0 of about 1\u202f200", "/console/migrations/"+id+"/stop")
	chief.get("/console/migrations/"+id+"/stop").want(200, "No more instances are taken")
	chief.fill("/console/migrations/" + id + "/stop").want(http.StatusSeeOther)
	chief.get("/console/migrations").want(200, "stopped <time")
	chief.get("/console/migrations/99/stop").want(404)
	s.visitor(s.key("olga", identities["operator"])).get("/console/migrations").want(403)
}
