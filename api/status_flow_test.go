package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestStatusPoll(t *testing.T) {
	s := newServer(t)
	_, address := s.accepted("k")
	v := s.visit()
	s.report(v, 10)
	tag := s.eventuallyProgress(address, `{"percent":10}`).header.Get("ETag")
	poll := func() <-chan answer {
		waiting := later(func() answer { return s.get(address, "If-None-Match", tag, "Prefer", "wait=60") })
		s.waitForStreams(1)
		return waiting
	}
	waiting := poll()
	select {
	case a := <-waiting:
		t.Fatalf("it did not wait: %d %s", a.status, a.body)
	default:
	}
	s.report(v, 20)
	a := <-waiting
	assert.Truef(t, a.status == 200 && string(read[wire.CommandStatus](t, a).Progress) == `{"percent":20}` &&
		a.header.Get("Preference-Applied") == "wait", "%d %s %v", a.status, a.body, a.header)
	tag = a.header.Get("ETag")
	a = s.get(address, "If-None-Match", tag, "Prefer", "wait=1")
	assert.Truef(t, a.status == 304 && a.header.Get("ETag") == tag && len(a.body) == 0, "%d %v %s", a.status, a.header, a.body)
	waiting = poll()
	v.signed("Ida")
	end := <-waiting
	assert.Truef(t, end.status == 200 && read[wire.CommandStatus](t, end).Status == transitions.Succeeded, "%d %s", end.status, end.body)
	// A finished command does not change any more, so the request does not wait.
	assert.Equal(t, 304, s.get(address, "If-None-Match", end.header.Get("ETag"), "Prefer", "wait=60").status)
	assert.Equal(t, string(end.body), string(s.get(address, "Prefer", "wait=60").body))
}

func TestStatusPoll_NodeStops(t *testing.T) {
	s := newServer(t)
	_, address := s.accepted("k")
	defer s.visit().signed("Ida")
	tag := s.get(address).header.Get("ETag")
	waiting := later(func() answer { return s.get(address, "If-None-Match", tag, "Prefer", "wait=60") })
	s.waitForStreams(1)
	require.NoError(t, s.api.Stop(t.Context()))
	assert.Equal(t, 304, (<-waiting).status)
	s.get(address, "If-None-Match", tag, "Prefer", "wait=60").wantProblem(t, 503, workflow.ShuttingDown)
	s.get(address).want(t, 200)
}

func TestStatus_ClientDisconnects(t *testing.T) {
	s := newServer(t)
	_, address := s.accepted("k")
	defer s.visit().signed("Ida")
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+address, nil)
	require.NoError(t, err)
	r.Header.Set("Prefer", "wait=60")
	r.Header.Set("If-None-Match", "*")
	done := make(chan error, 1)
	go func() {
		response, err := http.DefaultClient.Do(r)
		if err == nil {
			err = fmt.Errorf("answered with %d", response.StatusCode)
			_ = response.Body.Close()
		}
		done <- err
	}()
	s.waitForStreams(1)
	cancel()
	<-done
	s.waitForStreams(0)
}

func TestStatusStreamShowsEveryChange(t *testing.T) {
	s := newServer(t)
	accepted, address := s.accepted("k")
	stream, cut := s.source(address)
	defer cut()
	v := s.visit()
	for percent := 10; percent <= 30; percent += 10 {
		s.report(v, percent)
		stream.until(func() bool {
			n := len(stream.statuses)
			return n > 0 && string(stream.statuses[n-1].Progress) == fmt.Sprintf(`{"percent":%d}`, percent)
		})
	}
	v.failed(errors.New("nobody opens"))
	stream.until(func() bool { return stream.statuses[len(stream.statuses)-1].Attempt == 2 })
	s.visit().signed("Ida")
	stream.until(func() bool { return false })
	last := stream.statuses[len(stream.statuses)-1]
	assert.Falsef(t, !stream.ended || last.Status != transitions.Succeeded || last.Failures != 1 || last.Failure != "nobody opens" || last.Attempt != 2, "ended %t with %+v", stream.ended, last)
	for i, status := range stream.statuses {
		assert.Falsef(t, status.Scope != accepted.Scope || status.Key != "k" || i > 0 && status.UpdatedAt.Before(stream.statuses[i-1].UpdatedAt), "status %d: %+v", i, status)
	}
	// An EventSource connects again after the end. It is told not to.
	a := s.get(address, "Accept", "text/event-stream", "Last-Event-ID", stream.lastID)
	assert.Truef(t, a.status == 204 && len(a.body) == 0, "%d %s", a.status, a.body)
	again, cut := s.source(address) // without the id it gets the end
	defer cut()
	again.until(func() bool { return false })
	assert.Truef(t, len(again.statuses) == 1 && again.statuses[0].Status == transitions.Succeeded && again.lastID == stream.lastID,
		"%+v, id %s", again.statuses, again.lastID)
}

func TestStatusStream_Resumes(t *testing.T) {
	s := newServer(t, func(c *api.Config) { c.Stream.CommentEvery = 20 * time.Millisecond })
	_, address := s.accepted("k")
	v := s.visit()
	s.report(v, 10)
	first, cut := s.source(address)
	first.until(func() bool {
		n := len(first.statuses)
		return n > 0 && first.statuses[n-1].Progress != nil
	})
	cut()
	again, cut := s.source(address, "Last-Event-ID", first.lastID)
	defer cut()
	again.until(func() bool { return len(again.texts) >= 3 }) // nothing but comments: there is nothing new
	assert.Truef(t, len(again.statuses) == 0 && !again.ended, "%+v", again.statuses)
	s.report(v, 20)
	again.until(func() bool { return len(again.statuses) > 0 })
	assert.Equalf(t, `{"percent":20}`, string(again.statuses[0].Progress), "%+v", again.statuses[0])
	late, cutLate := s.source(address, "Last-Event-ID", "0") // it missed a few, and gets the newest
	defer cutLate()
	late.until(func() bool { return len(late.statuses) > 0 })
	assert.Equalf(t, `{"percent":20}`, string(late.statuses[0].Progress), "%+v", late.statuses[0])
	require.NoError(t, s.api.Stop(t.Context()))
	again.until(func() bool { return false })
	assert.True(t, again.ended, "the stream goes on")
	v.signed("Ida")
}

func TestStatus_OtherTenant(t *testing.T) {
	s := newServer(t)
	_, address := s.accepted("k")
	defer s.visit().signed("Ida")
	other := []string{"Pawl-Tenant", "other"}
	s.get(address, other...).wantProblem(t, 404, workflow.CommandNotFound)
	s.get(address, append(other, "Accept", "text/event-stream")...).wantProblem(t, 404, workflow.CommandNotFound)
	s.get(address, append(other, "If-None-Match", "*", "Prefer", "wait=60")...).wantProblem(t, 404, workflow.CommandNotFound)
	s.do(http.MethodDelete, address, nil, other...).wantProblem(t, 404, workflow.CommandNotFound)
	head := s.do(http.MethodHead, address, nil, "Accept", "text/event-stream")
	assert.Truef(t, head.status == 200 && head.header.Get("Content-Type") == "application/json" &&
		slices.Contains(head.header.Values("Vary"), "Accept"),
		"HEAD: %d %v", head.status, head.header)
}

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
	assert.Falsef(t, m.Command.Status != transitions.Succeeded || string(m.Command.Result) != string(read[wire.CommandStatus](t, s.get(address)).Result), "%+v", m)
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
