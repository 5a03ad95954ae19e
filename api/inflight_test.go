package api_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func (s *server) deliver(id uuid.UUID, key string, headers ...string) answer {
	s.t.Helper()
	return s.post("/v1/instances/"+id.String()+"/deliver", key, `{"door":3}`, headers...)
}

// accepted begins a delivery and returns its status and address.
func (s *server) accepted(key string) (wire.CommandStatus, string) {
	s.t.Helper()
	a := s.deliver(s.booked(), key)
	a.want(s.t, http.StatusAccepted)
	return read[wire.CommandStatus](s.t, a), a.header.Get("Location")
}

// eventually waits until the status of a command fits, and returns the answer that has it.
func (s *server) eventually(address string, fits func(*wire.CommandStatus) bool) (shown answer) {
	s.t.Helper()
	await.Eventually(s.t, "the status of the command", func() bool {
		shown = s.get(address)
		status := read[wire.CommandStatus](s.t, shown)
		return fits(&status)
	})
	return shown
}

func succeeded(s *wire.CommandStatus) bool { return s.Status == transitions.Succeeded }

// eventuallyProgress waits until a command shows this progress, and returns the answer that does.
func (s *server) eventuallyProgress(address, progress string) answer {
	s.t.Helper()
	return s.eventually(address, func(c *wire.CommandStatus) bool { return string(c.Progress) == progress })
}

func TestInFlight_StatusAndReplay(t *testing.T) {
	s := newServer(t)
	id := s.booked()
	a := s.deliver(id, "to the/door", "Idempotency-Scope", "a/b")
	a.want(t, http.StatusAccepted)
	status := read[wire.CommandStatus](t, a)
	assert.True(t, status.Scope == "a/b" && status.Key == "to the/door" && status.Instance == id && status.Workflow == "delivery" &&
		status.Transition == "deliver" && !status.CreatedAt.IsZero() && status.Result == nil, string(a.body))
	address := a.header.Get("Location")
	assert.True(t, address == "/v1/commands/a%2Fb/to%20the%2Fdoor" && a.header.Get("Retry-After") == "1" && a.header.Get("ETag") != "", a.header)
	s.visit().signed("Ida")
	status = read[wire.CommandStatus](t, s.eventually(address, succeeded))
	var result transitions.Result
	require.NoError(t, json.Unmarshal(status.Result, &result))
	assert.Truef(t, result.State == delivered && status.Code == 200 && status.Attempt == 1, "%+v", status)
	again := s.deliver(id, "to the/door", "Idempotency-Scope", "a/b")
	assert.Truef(t, again.status == 200 && string(again.body) == string(status.Result) && again.header.Get("Idempotent-Replayed") == "true",
		"the duplicate of the finished command: %d %s %v", again.status, again.body, again.header)
}

func TestDuplicatesWaitForOneAnswer(t *testing.T) {
	s := newServer(t)
	id := s.booked()
	var waiting []<-chan answer
	for range 4 {
		waiting = append(waiting, later(func() answer { return s.deliver(id, "k", "Prefer", "wait=60") }))
	}
	v := s.visit()
	s.waitForStreams(4)
	v.failed(workflow.Final(errors.New("nobody opens")))
	last := s.deliver(id, "k", "Prefer", "wait=60")
	p := last.wantProblem(t, 409, workflow.ActivityFailed)
	assert.True(t, p.Final && strings.Contains(p.Detail, "nobody opens") && p.State == returned, p)
	fresh := 0
	for _, w := range waiting {
		a := <-w
		assert.Truef(t, a.status == 409 && string(a.body) == string(last.body) && a.header.Get("Preference-Applied") == "wait",
			"%d %s %v", a.status, a.body, a.header)
		if a.header.Get("Idempotent-Replayed") == "" {
			fresh++
		}
	}
	assert.Equal(t, 1, fresh, "answers are no replay")
}

func TestWaitEndsWithStatus(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *api.Config) { c.Limits.Wait = time.Second })
	id := s.booked()
	waiting := later(func() answer { return s.deliver(id, "k", "Prefer", "respond-async, wait=60") })
	v := s.visit()
	a := <-waiting
	a.want(t, http.StatusAccepted)
	assert.Equal(t, "wait, respond-async", a.header.Get("Preference-Applied"))
	assert.Equal(t, 304, s.get(a.header.Get("Location"), "If-None-Match", a.header.Get("ETag")).status, "the tag is not that of the status")
	page := s.get("/v1/events?after=now", "Prefer", "wait=60")
	assert.Truef(t, page.status == 200 && page.header.Get("Preference-Applied") == "wait", "%d %v", page.status, page.header)
	require.NoError(t, s.api.Stop(t.Context()))
	a = s.deliver(id, "k", "Prefer", "wait=60")
	assert.Truef(t, a.status == 202 && a.header.Get("Preference-Applied") == "", "a stopping node: %d %v", a.status, a.header)
	v.signed("Ida")
}

func TestBulkWaitsForAllCommands(t *testing.T) {
	s := newServer(t)
	first, second := s.booked(), s.booked()
	item := func(id uuid.UUID) string {
		return `{"transition":"deliver","instance":"` + id.String() + `","key":"k"}`
	}
	pack := `{"workflow":"parcel","transition":"pack","key":"k","payload":{"to":"Wien"}}`
	body := "[" + strings.Join([]string{item(first), pack, "7", item(second), item(first)}, ",") + "]"
	waiting := later(func() answer {
		return s.do(http.MethodPost, "/v1/commands", []byte(body), "Content-Type", "application/json", "Prefer", "wait=60")
	})
	for range 2 {
		if v := s.visit(); v.Instance == first {
			v.signed("Ida")
		} else {
			s.report(v, 50)
			defer v.signed("late")
		}
	}
	s.eventually("/v1/commands/delivery:"+first.String()+"/k", succeeded)
	s.eventuallyProgress("/v1/commands/delivery:"+second.String()+"/k", `{"percent":50}`)
	s.waitForStreams(1)
	require.NoError(t, s.api.Stop(t.Context()))
	a := <-waiting
	results := read[[]wire.BulkResult](t, a)
	for i, want := range []int{200, 201, 400, 202, 200} {
		assert.Equalf(t, want, results[i].Status, "item %d %s", i, results[i].Body)
	}
	assert.Truef(t, string(results[0].Body) == string(results[4].Body) && !results[0].Replayed && results[4].Replayed,
		"the duplicate in the same request got %+v, the first %+v", results[4], results[0])
	status := read[wire.CommandStatus](t, answer{body: results[3].Body})
	assert.Truef(t, status.Instance == second && string(status.Progress) == `{"percent":50}` && a.header.Get("Preference-Applied") == "wait",
		"%s, %v", results[3].Body, a.header)
}

func TestScheduledCommand(t *testing.T) {
	s := newServer(t)
	id := s.packed("1").String()
	due := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	at := []string{"Pawl-Not-Before", due.Format(time.RFC3339)}
	a := s.post("/v1/instances/"+id+"/stamp", "k", `{}`, at...)
	a.want(t, 202)
	status := read[wire.CommandStatus](t, a)
	assert.Truef(t, status.Status == transitions.Pending && status.RunAt.Equal(due) && a.header.Get("Retry-After") == "60", "%v %s", a.header, a.body)
	for _, other := range []string{due.Add(time.Hour).Format(time.RFC3339), "2020-01-01T00:00:00Z"} {
		s.post("/v1/instances/"+id+"/stamp", "k", `{}`, "Pawl-Not-Before", other).wantProblem(t, 422, workflow.KeyReused)
	}
	s.comes("k")
	a = s.post("/v1/instances/"+id+"/stamp", "k", `{}`, append(at, "Prefer", "wait=60")...)
	a.want(t, 200)
	assert.Equal(t, int64(2), read[transitions.Result](t, a).Version)
	item := `{"transition":"stamp","instance":"` + id + `","key":"bulk","not_before":`
	a = s.bulk("application/json", "["+item+`"`+due.Format(time.RFC3339)+`"},`+item+`"2999-01-01T00:00:00Z"},`+item+`""},`+item+`7}]`, "")
	for i, one := range read[[]wire.BulkResult](t, a) {
		assert.Equalf(t, []int{202, 400, 400, 400}[i], one.Status, "%s", one.Body)
	}
}

func TestCancelRunningCommand(t *testing.T) {
	s := newServer(t)
	a := s.post("/v1/instances/"+s.booked().String()+"/deliver", "k", `{"stubborn":true}`)
	a.want(t, http.StatusAccepted)
	address := a.header.Get("Location")
	v := s.visit()
	a = s.do(http.MethodDelete, address, nil, "Pawl-Actor", "ann")
	a.want(t, http.StatusAccepted)
	assert.Truef(t, read[wire.CommandStatus](t, a).CancelledBy == "ann" && a.header.Get("Location") == address &&
		a.header.Get("Retry-After") != "", "%s %v", a.body, a.header)
	<-v.ctx.Done()
	v.failed(context.Canceled)
	s.eventually(address, func(c *wire.CommandStatus) bool { return c.Status == transitions.FailedFinal })
	a = s.do(http.MethodDelete, address, nil)
	a.want(t, http.StatusOK)
	status := read[wire.CommandStatus](t, a)
	assert.True(t, status.Code == 409 && status.CancelledBy == "ann", string(a.body))
	answer{409, http.Header{"Content-Type": {"application/problem+json"}}, status.Problem}.wantProblem(t, 409, workflow.CommandCancelled)
	s.exec("SELECT pawl.claim('desk', 'k', sha256('x'))")
	s.do(http.MethodDelete, "/v1/commands/desk/k", nil).wantProblem(t, 409, workflow.InProgress)
}

// A command is cancelled by its sender, by a caller with a role for its transition, and by an operator; a stuck one only by operators.
func TestCancelNeedsRole(t *testing.T) {
	s := newServer(t)
	due := time.Now().Add(time.Hour).Format(time.RFC3339)
	for _, c := range []struct {
		actor, roles string
		code         workflow.Code
	}{{"eve", "nobody", workflow.RoleRequired}, {"ann", "nobody", ""}, {"bob", "boss", ""}, {"eve", api.Operator, ""}, {"eve", api.OperatorOfAll, ""}} {
		a := s.post("/v1/instances/"+s.packed("1").String()+"/send", "k", `{"via":"air"}`, "Pawl-Not-Before", due, "Pawl-Actor", "ann",
			"Pawl-Roles", "clerk")
		a.want(t, 202)
		address := a.header.Get("Location")
		a = s.do(http.MethodDelete, address, nil, "Pawl-Actor", c.actor, "Pawl-Roles", c.roles)
		if c.code == "" {
			assert.Containsf(t, []int{200, 202}, a.status, "%+v: %s", c, a.body) // a worker may be quick
			continue
		}
		a.wantProblem(t, 403, c.code)
		assert.Empty(t, read[wire.CommandStatus](t, s.get(address)).CancelledBy)
	}
	about := s.stuck("k")
	address := "/v1/commands/" + about.Scope + "/k"
	s.do(http.MethodDelete, address, nil, "Pawl-Roles", "clerk").wantProblem(t, 403, workflow.Forbidden)
	a := s.do(http.MethodDelete, address, nil, "Pawl-Actor", "olga", "Pawl-Roles", api.Operator)
	assert.Equalf(t, "olga", read[wire.CommandStatus](t, a).CancelledBy, "%d %s", a.status, a.body)
}

// An expired key is refused by every route that takes it.
func TestExpiredKeyIsGone(t *testing.T) {
	s := newServer(t)
	const path, body, status = "/v1/workflows/parcel/pack", `{"to":"Wien"}`, "/v1/commands/parcel:pack/k"
	s.post(path, "k", body).want(t, http.StatusCreated)
	s.exec(`UPDATE pawl.command SET expires_at = now() - interval '1 second' WHERE key = 'k'`)
	before := s.rows()["audit"]
	stream := []string{"Accept", "text/event-stream"}
	target := `{"scope":"parcel:pack","key":"k"}`
	for what, a := range map[string]answer{
		"a duplicate":                   s.post(path, "k", body),
		"a duplicate that waits":        s.post(path, "k", body, "Prefer", "wait=5"),
		"its status":                    s.get(status),
		"its status, known and awaited": s.get(status, "If-None-Match", `"0"`, "Prefer", "wait=5"),
		"its stream":                    s.get(status, stream...),
		"its stream, again":             s.get(status, append(stream, "Last-Event-ID", "0")...),
		"a cancel":                      s.do(http.MethodDelete, status, nil),
		"retry":                         s.post("/v1/ops/commands/retry", "op", target),
		"resolve":                       s.post("/v1/ops/commands/resolve", "op", target),
		"abandon":                       s.post("/v1/ops/commands/abandon", "op", target),
	} {
		t.Log(what)
		a.wantProblem(t, http.StatusGone, workflow.KeyExpired)
	}
	s.post(path, "k", `{"to":"Graz"}`).wantProblem(t, http.StatusUnprocessableEntity, workflow.KeyReused)
	again := `[{"workflow":"parcel","transition":"pack","key":"k","payload":` + body + `}]`
	many := read[[]wire.BulkResult](t, s.bulk("application/json", again, ""))
	assert.Truef(t, many[0].Status == http.StatusGone && strings.Contains(string(many[0].Body), string(workflow.KeyExpired)), "%+v", many)
	c := s.dial()
	c.send(`{"op":"watch","id":"w","scope":"parcel:pack","key":"k"}`)
	m := c.next()
	assert.Truef(t, m.Op == "error" && m.Code == workflow.KeyExpired, "a watch: %+v", m)
	assert.Equal(t, before, s.rows()["audit"], "transitions")
}

// Another node ends a command, and retention removes it, before waiting requests have read it again. Each of them ends, with the answer
// that a new request would get.
func TestWait_CommandExpires(t *testing.T) {
	for _, c := range []struct {
		forget string
		status int
		code   workflow.Code
	}{{"infinity", http.StatusGone, workflow.KeyExpired}, {"-infinity", http.StatusNotFound, workflow.CommandNotFound}} {
		t.Run(string(c.code), func(t *testing.T) {
			s := newServer(t)
			const path, address = "/v1/workflows/parcel/pack", "/v1/commands/parcel:pack/k"
			due := time.Now().Add(time.Hour).Format(time.RFC3339)
			s.post(path, "k", `{"to":"Wien"}`, "Pawl-Not-Before", due).want(t, http.StatusAccepted)

			polling := later(func() answer { return s.get(address, "If-None-Match", "*", "Prefer", "wait=60") })
			stream, cut := s.source(address)
			defer cut()
			socket := s.dial()
			socket.watch("w", "parcel:pack", "k")
			awaiting := later(func() error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := s.engine.Await(ctx, transitions.Ref{Scope: "parcel:pack", Key: "k"})
				return err
			})
			s.waitForStreams(3)
			// In one transaction, so that no intermediate state is read.
			require.NoError(t, pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), `UPDATE pawl.command SET status = 'succeeded', phase = NULL, request = NULL, run_at = NULL,
					code = 201, body = '{}', finished_at = now(), expires_at = now() - interval '1 hour', forget_at = $1::text::timestamptz
						WHERE key = 'k'`, c.forget)
				_, purged := tx.Exec(t.Context(), "SELECT pawl.purge()")
				return errors.Join(err, purged)
			}))
			(<-polling).wantProblem(t, c.status, c.code)
			err := <-awaiting
			assert.Equalf(t, c.code, workflow.CodeOf(err), "Await: %v", err)
			m := socket.next()
			assert.Truef(t, m.Op == "error" && m.ID == "w" && m.Code == c.code, "the watch: %+v", m)
			socket.subscribe("w", `"now"`, `{}`) // the connection goes on, and the id is free
			stream.until(func() bool { return false })
			assert.Truef(t, stream.ended && len(stream.statuses) == 1, "the stream has %+v", stream.statuses)
			// An EventSource connects again, and this answer tells it to stay away.
			s.get(address, "Accept", "text/event-stream", "Last-Event-ID", stream.lastID).wantProblem(t, c.status, c.code)
		})
	}
}
