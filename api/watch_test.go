package api_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// watch begins to watch a command and reads its first status.
func (c *wsClient) watch(id, scope, key string) wsMessage {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"op":"watch","id":%q,"scope":%q,"key":%q}`, id, scope, key))
	m := c.next()
	if m.Op != "status" || m.ID != id || m.Command == nil || m.Command.Scope != scope || m.Command.Key != key {
		c.t.Fatalf("watching was answered with %+v", m)
	}
	return m
}

// until reads statuses until one fits.
func (c *wsClient) until(fits func(wsMessage) bool) wsMessage {
	c.t.Helper()
	for {
		m := c.next()
		if m.Op != "status" {
			c.t.Fatalf("waiting for a status: %+v", m)
		}
		if fits(m) {
			return m
		}
	}
}

func TestWatchShowsCommandUntilEnd(t *testing.T) {
	s := newServer(t)
	status, address := s.accepted("k")
	c := s.dial()
	c.watch("w", status.Scope, "k")
	v := s.visit()
	s.report(v, 10)
	m := c.until(func(m wsMessage) bool { return m.Command.Progress != nil })
	assert.Truef(t, string(m.Command.Progress) == `{"percent":10}` && !m.Final && m.Command.Status == transitions.Processing, "%+v", m)
	v.signed("Ida")
	m = c.until(func(m wsMessage) bool { return m.Final })
	if m.Command.Status != transitions.Succeeded || string(m.Command.Result) != string(read[wire.CommandStatus](t, s.get(address)).Result) {
		t.Errorf("%+v", m)
	}
	// The watch is over, and its id free.
	c.send(`{"op":"unsubscribe","id":"w"}`)
	if m := c.next(); m.Op != "error" || m.Code != workflow.InvalidRequest {
		t.Errorf("%+v", m)
	}
	if m := c.watch("w", status.Scope, "k"); !m.Final {
		t.Errorf("a finished command: %+v", m)
	}
	c.subscribe("w", `"now"`, `{}`)
}

func TestUnsubscribeEndsWatch(t *testing.T) {
	s := newServer(t)
	status, address := s.accepted("k")
	c := s.dial()
	c.watch("w", status.Scope, "k")
	v := s.visit()
	c.send(`{"op":"unsubscribe","id":"w"}`)
	for {
		m := c.next()
		if m.Op == "unsubscribed" && m.ID == "w" {
			break
		}
		require.Equalf(t, "status", m.Op, "%+v", m)
	}
	v.signed("Ida")
	s.eventually(address, succeeded)
	if m := c.watch("x", status.Scope, "k"); !m.Final { // nothing of w came before it
		t.Errorf("%+v", m)
	}
}

func TestWatches_SharedIDs(t *testing.T) {
	s := newServer(t, func(c *api.Config) { c.Stream.Subscriptions = 2 })
	status, _ := s.accepted("k")
	defer s.visit().signed("Ida")
	ended, _ := s.accepted("l")
	s.visit().signed("Ida")
	c := s.dial()
	c.subscribe("a", `"now"`, `{"types":["nothing"]}`)
	c.events("caught_up")
	for range 5 { // those that have ended do not count
		c.send(fmt.Sprintf(`{"op":"watch","id":"done","scope":%q,"key":"l"}`, ended.Scope))
		c.until(func(m wsMessage) bool { return m.ID == "done" && m.Final })
	}
	c.send(fmt.Sprintf(`{"op":"watch","id":"w","scope":%q,"key":"k"}`, status.Scope))
	c.until(func(m wsMessage) bool { return m.ID == "w" && m.Command.Status == transitions.Processing })
	for _, text := range []string{
		fmt.Sprintf(`{"op":"watch","id":"a","scope":%q,"key":"k"}`, status.Scope), // taken by a subscription
		fmt.Sprintf(`{"op":"watch","id":"w","scope":%q,"key":"k"}`, status.Scope), // by a watch
		`{"op":"subscribe","id":"w","after":"now"}`,                               //
		fmt.Sprintf(`{"op":"watch","id":"x","scope":%q,"key":"k"}`, status.Scope), // the third of two
	} {
		c.send(text)
		m := c.next()
		assert.Truef(t, m.Op == "error" && m.Code == workflow.InvalidRequest && m.Detail != "", "%s was answered with %+v", text, m)
	}
}

func TestWatch_DatabaseOutage(t *testing.T) {
	s := newServer(t)
	status, _ := s.accepted("k")
	v := s.visit()
	c := s.dial()
	c.watch("w", status.Scope, "k")
	restore := s.outage()
	c.send(fmt.Sprintf(`{"op":"watch","id":"x","scope":%q,"key":"k"}`, status.Scope)) // begun during the outage
	await.Eventually(t, "the node is not ready", func() bool { return s.get("/readyz").status == 503 })
	restore()
	v.signed("Ida")
	final := map[string]bool{}
	for len(final) < 2 {
		m := c.next()
		require.Equalf(t, "status", m.Op, "%+v", m)
		if m.Final {
			final[m.ID] = true
		}
	}
}
