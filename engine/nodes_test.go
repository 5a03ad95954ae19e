package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestNodesSayWhatTheyKnowAndDo(t *testing.T) {
	t.Parallel()
	pool := database(t)
	asked, goOn := make(chan struct{}, 10), make(chan struct{})
	w := parcels(func(ctx context.Context, _ *workflow.Attempt) (track, error) {
		asked <- struct{}{}
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return track{}, ctx.Err()
	})
	one := newEngine(t, pool, running(w, crates(2), crates(1)), sinks(relay.Sink{Name: "books", To: &receiver{}, Tenants: []string{"acme"}}))
	idle := newEngine(t, pool, running(crates(1)), func(c *engine.Config) { c.InFlight.Workers, c.Retention.Off = -1, true })
	defer close(goOn)
	for _, tenant := range []string{"", "", "acme"} {
		c := transitions.Command{Tenant: tenant, Workflow: "parcel", Transition: "pack", Key: tenant + "p"}
		r := submit(t, one, c)
		c.Transition, c.Instance, c.Key = "send", r.Instance, "s"
		submit(t, one, c)
	}
	for range 2 {
		await.Receive(t, "an attempt is made", asked)
	}
	var list []inspect.NodeInfo
	await.Eventually(t, "the first node does everything", func() bool {
		var err error
		list, err = idle.Admin().Nodes(t.Context(), "")
		require.NoError(t, err)
		return len(list) == 2 && len(list[0].Leads) == 1 && len(list[0].Sinks) == 1
	})
	n := list[0]
	assert.Truef(t, n.Leads[0] == "retention" && n.Sinks[0] == "books" && n.Leases == 2 && !n.AtLeast && n.Migrations == nil && n.Alive &&
		strings.Contains(n.Build, "pawl ") && !n.BegunAt.IsZero() && !n.SeenAt.Before(n.BegunAt), "%+v", n)
	want := []inspect.NodeVersion{{Workflow: "crate", Version: 1}, {Workflow: "crate", Version: 2},
		{Workflow: "parcel", Version: 1}}
	assert.Truef(t, len(n.Knowing) == 3 && n.Knowing[0] == want[0] && n.Knowing[1] == want[1] && n.Knowing[2] == want[2],
		"it knows %v", n.Knowing)
	if n := list[1]; n.Leads != nil || n.Sinks != nil || n.Leases != 0 || len(n.Knowing) != 1 {
		t.Errorf("the idle one: %+v", n)
	}
	for tenant, want := range map[string]struct {
		leases int64
		sinks  int
	}{"default": {1, 0}, "acme": {1, 1}, "nobody": {0, 0}} {
		list, err := one.Admin().Nodes(t.Context(), tenant)
		assert.Truef(t, err == nil && list[0].Leases == want.leases && len(list[0].Sinks) == want.sinks, "of %s: %+v, %v", tenant, list, err)
	}
	wantCode(t, errOf(one.Admin().Nodes(t.Context(), "\x00")), workflow.InvalidRequest)

	idle.Stop(t.Context())
	if list, err := one.Admin().Nodes(t.Context(), ""); err != nil || len(list) != 1 {
		t.Errorf("after one has stopped: %+v, %v", list, err)
	}
}
