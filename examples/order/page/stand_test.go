package page_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/page"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// quiet is for what a test looks at in another way.
var quiet = slog.New(slog.DiscardHandler)

// stand is a shop: two nodes on one database. One asks who calls, and serves the page through a cable; with the
// other one everything else happens.
type stand struct {
	bank           *provider.Provider
	guarded, other *service.Service
	cable          *cable
}

// newStand opens a shop whose tickets are good for so long; 0 is the default.
func newStand(t *testing.T, ticketFor time.Duration) *stand {
	t.Helper()
	s := &stand{bank: provider.New()}
	database := pgtest.URL(t)
	s.other = s.node(t, service.Config{Database: database})
	key := newKey(t, database)
	serving := func(node *service.Service) map[string]http.Handler {
		h, err := page.New(page.Config{Pawl: node.URL(), Key: key, TicketFor: ticketFor, Log: quiet})
		assert.NoError(t, err)
		return map[string]http.Handler{page.Path: h}
	}
	s.guarded = s.node(t, service.Config{Database: database, Auth: service.Auth{Keys: true}, Routes: serving})
	s.cable = newCable(t, strings.TrimPrefix(s.guarded.URL(), "http://"))
	return s
}

func (s *stand) node(t *testing.T, c service.Config) *service.Service {
	t.Helper()
	c.Workflows, c.Address, c.Log = []workflow.Source{order.Workflow(s.bank)}, "127.0.0.1:0", quiet
	node, err := service.Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, node.Stop(context.Background()))
	})
	return node
}

// newKey makes the backend's API key.
func newKey(t *testing.T, database string) (text string) {
	t.Helper()
	grants, err := auth.ParseGrants(page.Grants)
	require.NoError(t, err)
	c := service.Config{Database: database, Schema: schema.Default, Log: quiet}
	err = service.WithKeys(t.Context(), c, func(ctx context.Context, keys *apikey.Table) (err error) {
		_, text, err = keys.Create(ctx, apikey.Key{Tenant: transitions.DefaultTenant, Name: "shop", Actor: "shop", Grants: grants,
			CreatedBy: "test"})
		return err
	})
	require.NoError(t, err)
	return text
}

// origin is the page's.
func (s *stand) origin() string { return "http://" + s.cable.Addr() }

// submit does something to an order at the other node, and waits for its end.
func (s *stand) submit(t *testing.T, number, transition, payload string) {
	t.Helper()
	e := s.other.Engine()
	r, err := e.Submit(t.Context(), transitions.Command{Workflow: "order", Transition: transition, BusinessKey: number, Key: "till-" +
		transition,
		Payload: []byte(payload), Roles: []string{order.Warehouse}})
	if err == nil && r.InFlight() {
		r, err = e.Await(t.Context(), transitions.Ref{Scope: transitions.DefaultScope("order", transition, r.Instance), Key: "till-" + transition})
	}
	if err == nil {
		err = r.Err()
	}
	require.NoError(t, err, transition)
}

// list is all orders.
func (s *stand) list(t *testing.T) []transitions.Instance {
	t.Helper()
	p, err := s.other.Engine().Read().Instances(t.Context(), inspect.Filter{Workflow: "order"})
	require.NoError(t, err)
	return p.Instances
}

// onlyOrder is the number of the one order that there is.
func (s *stand) onlyOrder(t *testing.T) string {
	t.Helper()
	list := s.list(t)
	require.Len(t, list, 1, "there orders")
	return list[0].BusinessKey
}

// history is what has happened to an order.
func (s *stand) history(t *testing.T, number string) []transitions.Entry {
	t.Helper()
	inst, err := s.other.Engine().Read().InstanceByKey(t.Context(), "", "order", number)
	require.NoError(t, err)
	all, err := s.other.Engine().Read().History(t.Context(), "", inst.ID, 0, 100)
	require.NoError(t, err)
	return all
}
