package console_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// stand is a node with a console.
type stand struct {
	*service.Service
	t    testing.TB
	bank *bank
	db   string
}

// newStand starts a node on a database of its own. It asks for API keys, unless that is changed.
func newStand(t testing.TB, change ...func(*service.Config)) *stand {
	t.Helper()
	s := &stand{t: t, bank: &bank{asked: make(chan chan<- error)}, db: pgtest.URL(t)}
	s.Service = s.node(append([]func(*service.Config){func(c *service.Config) { c.Auth.Keys = true }}, change...)...)
	return s
}

// node starts another one on the same database.
func (s *stand) node(change ...func(*service.Config)) *service.Service {
	s.t.Helper()
	c := service.Config{Workflows: []workflow.Source{claims(s.bank), order.Workflow(provider.New())}, Database: s.db, Address: "127.0.0.1:0",
		Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&c)
	}
	node, err := service.Start(s.t.Context(), c)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { assert.NoError(s.t, node.Stop(context.Background())) })
	return node
}

// connect opens a connection to the database.
func (s *stand) connect() *pgx.Conn {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.db)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// awaitCase waits until a condition holds for an instance.
func (s *stand) awaitCase(what string, id uuid.UUID, met func(inspect.Case) bool) {
	s.t.Helper()
	await.Eventually(s.t, what, func() bool {
		c, err := s.Engine().Read().Case(s.t.Context(), "", id)
		return err == nil && met(c)
	})
}

// failedOnce reports whether the first attempt of an activity has failed.
func failedOnce(c inspect.Case) bool { return len(c.InFlight) == 1 && c.InFlight[0].Failures == 1 }

// key makes an API key of the default tenant.
func (s *stand) key(actor, grants string, roles ...string) string {
	s.t.Helper()
	return s.keyOf(transitions.DefaultTenant, actor, grants, roles...)
}

func (s *stand) keyOf(tenant, actor, grants string, roles ...string) string {
	s.t.Helper()
	var text string
	err := service.WithKeys(s.t.Context(), service.Config{Database: s.db, Schema: "pawl", Log: slog.New(slog.DiscardHandler)},
		func(ctx context.Context, table *apikey.Table) error {
			k := apikey.Key{Tenant: tenant, Name: actor + "-" + uuid.NewString()[:8], Actor: actor, Roles: roles, CreatedBy: "test"}
			var err error
			if k.Grants, err = auth.ParseGrants(grants); err == nil {
				_, text, err = table.Create(ctx, k)
			}
			return err
		})
	require.NoError(s.t, err)
	return text
}

// everything is what an operator who may do all has.
const everything = "read stream submit act-as operate:all keys"

// filed makes a claim, and returns its instance.
func (s *stand) filed(number string, amount int) uuid.UUID {
	s.t.Helper()
	return s.submit(transitions.Command{Workflow: "claim", Transition: "file", Actor: "ann",
		Payload: fmt.Appendf(nil, `{"number":%q,"who":"ann","amount":%d}`, number, amount)}).Instance
}

// submit does something on the engine, past all grants.
func (s *stand) submit(c transitions.Command) transitions.Receipt {
	s.t.Helper()
	if c.Key == "" {
		c.Key = uuid.NewString()
	}
	if c.Roles == nil {
		c.Roles = []string{transitions.AnyRole}
	}
	r, err := s.Engine().Submit(s.t.Context(), c)
	require.NoError(s.t, err)
	require.Less(s.t, r.Status, 400, c.Transition)
	return r
}

func (s *stand) do(id uuid.UUID, transition, actor, payload string) transitions.Receipt {
	s.t.Helper()
	return s.submit(transitions.Command{Instance: id, Transition: transition, Actor: actor, Payload: []byte(payload)})
}

// operate pauses or resumes an instance.
func (s *stand) operate(action transitions.Action, id uuid.UUID, reason string) {
	s.t.Helper()
	c := transitions.Command{Instance: id, Key: uuid.NewString(), Actor: "olga"}
	r, err := s.Engine().Admin().Operate(s.t.Context(), c, transitions.Operation{Action: action, Reason: reason})
	require.NoError(s.t, err)
	require.NoError(s.t, r.Err())
}

// stuck makes a claim whose payment nobody knows of.
func (s *stand) stuck(number string) uuid.UUID {
	s.t.Helper()
	id := s.filed(number, 10)
	s.do(id, "approve", "bob", `{}`)
	s.do(id, "pay", "bob", `{"note":""}`)
	await.Receive(s.t, "the bank is asked", s.bank.asked) <- context.DeadlineExceeded
	await.Eventually(s.t, "it is stuck", func() bool {
		x, err := s.Engine().Read().Explain(s.t.Context(), "", id, "", nil)
		require.NoError(s.t, err)
		return len(x.Stuck) == 1
	})
	return id
}

// awaitDead waits until the one sink has dead letters that wait.
func (s *stand) awaitDead() {
	s.t.Helper()
	await.Eventually(s.t, "events are dead", func() bool {
		list, err := s.Engine().Admin().Sinks(s.t.Context(), "default")
		return err == nil && len(list) == 1 && list[0].DeadLetters > 0
	})
}

// deadMessage has a message come whose order is not there, and returns its body.
func (s *stand) deadMessage(id string) string {
	s.t.Helper()
	const body = `{"type":"payment.abandoned","data":{"reference":"c-1:k-9","reason":"<left>"}}`
	_, err := s.Engine().Consume(s.t.Context(), transitions.Message{Consumer: order.PaymentNotices, ID: id, Body: []byte(body)})
	require.Error(s.t, err)
	return body
}

// visitor is a browser without a screen.
type visitor struct {
	t      testing.TB
	origin string
	client *http.Client
}

// page is what a visitor is answered.
type page struct {
	t      testing.TB
	status int
	header http.Header
	text   string
}

func newVisitor(t testing.TB, origin string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &visitor{t, origin, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}}
}

// visitor is somebody who has signed in.
func (s *stand) visitor(credential string) *visitor {
	s.t.Helper()
	v := newVisitor(s.t, s.URL())
	v.post("/console/sign-in", url.Values{"credential": {credential}}).want(http.StatusSeeOther)
	return v
}

func (v *visitor) send(r *http.Request, header ...string) *page {
	v.t.Helper()
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Del(header[i])
		if header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	response, err := v.client.Do(r)
	require.NoError(v.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(v.t, err)
	return &page{v.t, response.StatusCode, response.Header, string(text)}
}

func (v *visitor) get(path string, header ...string) *page {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.origin+path, nil)
	require.NoError(v.t, err)
	return v.send(r, header...)
}

// post sends a form as it is, from a page of this origin.
func (v *visitor) post(path string, form url.Values, header ...string) *page {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, v.origin+path, strings.NewReader(form.Encode()))
	require.NoError(v.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return v.send(r, header...)
}

// fill sends a form with what its page has hidden in it: the token of any page, and a key.
func (v *visitor) fill(path string, pairs ...string) *page {
	v.t.Helper()
	return v.post(path, v.form(pairs...))
}

func (v *visitor) form(pairs ...string) url.Values {
	v.t.Helper()
	form := url.Values{"_token": {v.token()}, "_key": {uuid.NewString()}}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return form
}

var tokenOf = regexp.MustCompile(`name="_token" value="([^"]+)"`)

func (v *visitor) token() string {
	v.t.Helper()
	found := tokenOf.FindStringSubmatch(v.get("/console/nowhere").text)
	require.NotNil(v.t, found)
	return found[1]
}

func (p *page) want(status int, has ...string) *page {
	p.t.Helper()
	require.Equal(p.t, status, p.status, p.text)
	for _, text := range has {
		assert.Contains(p.t, p.text, text)
	}
	return p
}

func (p *page) location() string { return p.header.Get("Location") }
