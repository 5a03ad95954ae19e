package api_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

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

// eventuallyProgress waits until a command shows this progress, and returns the
// answer that does.
func (s *server) eventuallyProgress(address, progress string) (shown answer) {
	s.t.Helper()
	await.Eventually(s.t, "the progress is shown", func() bool {
		shown = s.get(address)
		return string(read[wire.CommandStatus](s.t, shown).Progress) == progress
	})
	return shown
}

// stopStreams ends everything that waits.
func (s *server) stopStreams() {
	s.t.Helper()
	if err := s.api.Stop(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func TestInFlight_Location(t *testing.T) {
	s := newServer(t)
	id := s.booked()
	a := s.deliver(id, "to the/door", "Idempotency-Scope", "a/b")
	a.want(t, http.StatusAccepted)
	status := read[wire.CommandStatus](t, a)
	assert.True(t, status.Scope == "a/b" && status.Key == "to the/door" && status.Instance == id && status.Workflow == "delivery" &&
		status.Transition == "deliver" && !status.CreatedAt.IsZero() && !status.UpdatedAt.IsZero() && status.Result == nil,
		a.body)
	h := a.header
	assert.True(t, h.Get("Location") == "/v1/commands/a%2Fb/to%20the%2Fdoor" && h.Get("Retry-After") == "1" && h.Get("ETag") != "" &&
		h.Get("Idempotent-Replayed") == "" && h.Get("Preference-Applied") == "" && h.Get("Content-Type") == "application/json",
		h)
	s.visit().signed("Ida")
	await.Eventually(t, "the command has succeeded", func() bool {
		a = s.get(h.Get("Location"))
		a.want(t, 200)
		status = read[wire.CommandStatus](t, a)
		return status.Status == transitions.Succeeded
	})
	var result transitions.Result
	err := json.Unmarshal(status.Result, &result)
	assert.Truef(t, err == nil && result.State == delivered && status.Code == 200 && status.Attempt == 1, "%s, %v", a.body, err)
	again := s.deliver(id, "to the/door", "Idempotency-Scope", "a/b")
	assert.Truef(t, again.status == 200 && string(again.body) == string(status.Result) && again.header.Get("Idempotent-Replayed") == "true",
		"the duplicate of the finished command: %d %s %v", again.status, again.body, again.header)
}

func TestDuplicatesWaitForTheSameAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(visit)
		status int
	}{
		"done":   {func(v visit) { v.signed("Ida") }, 200},
		"failed": {func(v visit) { v.failed(workflow.Final(errors.New("nobody opens"))) }, 409},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			id := s.booked()
			var waiting []<-chan answer
			for range 4 {
				waiting = append(waiting, later(func() answer { return s.deliver(id, "k", "Prefer", "wait=60") }))
			}
			v := s.visit()
			s.waitForStreams(4)
			c.end(v)
			var answers []answer
			for _, w := range waiting {
				answers = append(answers, <-w)
			}
			answers = append(answers, s.deliver(id, "k"))
			fresh := 0
			for _, a := range answers {
				assert.Truef(t, a.status == c.status && string(a.body) == string(answers[0].body),
					"%d %s; another got %s", a.status, a.body, answers[0].body)
				if a.header.Get("Idempotent-Replayed") == "" {
					fresh++
				}
			}
			assert.Equal(t, 1, fresh, "answers are no replay")
			if c.status == 409 {
				p := answers[0].wantProblem(t, 409, workflow.ActivityFailed)
				assert.True(t, p.Final && strings.Contains(p.Detail, "nobody opens") && p.State == returned, answers[0].body)
			}
			assert.Equal(t, "wait", answers[0].header.Get("Preference-Applied"), "Preference-Applied")
		})
	}
}

func TestWaitIsBounded(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *api.Config) { c.Limits.Wait = time.Second })
	a := s.deliver(s.booked(), "k", "Prefer", "wait=60")
	assert.Truef(t, a.status == 202 && a.header.Get("Preference-Applied") == "wait", "%d %v %s", a.status, a.header, a.body)
	if page := s.get("/v1/events?after=now", "Prefer", "wait=60"); page.status != 200 || page.header.Get("Preference-Applied") != "wait" {
		t.Errorf("%d %v %s", page.status, page.header, page.body)
	}
}

func TestWaitTimeout_ReturnsStatus(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.booked()
	began := time.Now()
	a := s.deliver(id, "k", "Prefer", "wait=1")
	assert.Truef(t, a.status == 202 && time.Since(began) >= time.Second && a.header.Get("Preference-Applied") == "wait",
		"%d after %v: %v %s", a.status, time.Since(began), a.header, a.body)
	address := a.header.Get("Location")
	waiting := later(func() answer { return s.deliver(id, "k", "Prefer", "respond-async, wait=60") })
	s.waitForStreams(1)
	v := s.visit()
	s.report(v, 40)
	s.eventuallyProgress(address, `{"percent":40}`)
	s.stopStreams()
	a = <-waiting
	a.want(t, http.StatusAccepted)
	status := read[wire.CommandStatus](t, a)
	assert.True(t, string(status.Progress) == `{"percent":40}` && status.Attempt == 1 && status.Status == transitions.Processing &&
		!status.LockedUntil.IsZero(),
		a.body)
	assert.Equal(t, "wait, respond-async", a.header.Get("Preference-Applied"), "Preference-Applied")
	shown := s.get(a.header.Get("Location"), "If-None-Match", a.header.Get("ETag"))
	assert.Equalf(t, 304, shown.status, "the answer's tag is not that of the status %s", shown.body)
	if a = s.deliver(id, "k", "Prefer", "respond-async"); a.status != 202 || a.header.Get("Preference-Applied") != "respond-async" ||
		a.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the duplicate: %d %v %s", a.status, a.header, a.body)
	}
	v.signed("Ida")
	if a = s.post("/v1/instances/"+s.booked().String()+"/note", "n", `{}`, "Prefer", "wait=60"); a.header.Get("Preference-Applied") != "" {
		t.Errorf("a preference was applied to a command that is done at once: %d %v", a.status, a.header)
	}
}

func TestOnANodeThatStopsNobodyWaits(t *testing.T) {
	s := newServer(t)
	id := s.booked()
	s.deliver(id, "k").want(t, 202)
	v := s.visit()
	s.stopStreams()
	a := s.deliver(id, "k", "Prefer", "wait=60")
	assert.Truef(t, a.status == 202 && a.header.Get("Preference-Applied") == "", "%d %v %s", a.status, a.header, a.body)
	v.signed("Ida")
}

func TestBulkWaitsOnceForAllOfItsCommands(t *testing.T) {
	s := newServer(t)
	first, second, third := s.booked(), s.booked(), s.booked()
	item := func(id uuid.UUID) string {
		return `{"transition":"deliver","instance":"` + id.String() + `","key":"k"}`
	}
	pack := `{"workflow":"parcel","transition":"pack","key":"k","payload":{"to":"Wien"}}`
	body := "[" + strings.Join([]string{item(first), pack, "7", item(second), item(third), item(first)}, ",") + "]"
	send := func() answer {
		return s.do(http.MethodPost, "/v1/commands", []byte(body), "Content-Type", "application/json", "Prefer", "wait=60")
	}
	waiting := later(send)
	for range 3 {
		if v := s.visit(); v.Instance != third {
			v.signed(v.Instance.String())
		} else {
			s.report(v, 50)
			defer v.signed("late")
		}
	}
	for _, id := range []uuid.UUID{first, second} {
		await.Eventually(t, "the parcel is delivered", func() bool {
			return read[wire.Instance](t, s.get("/v1/instances/"+id.String())).State == delivered
		})
	}
	s.eventuallyProgress("/v1/commands/delivery:"+third.String()+"/k", `{"percent":50}`)
	s.waitForStreams(1)
	s.stopStreams()
	a := <-waiting
	a.want(t, 200)
	results := read[[]wire.BulkResult](t, a)
	for i, want := range []int{200, 201, 400, 200, 202, 200} {
		assert.Equalf(t, want, results[i].Status, "item %d %s", i, results[i].Body)
	}
	assert.Truef(t, string(results[0].Body) == string(results[5].Body) && !results[0].Replayed && results[5].Replayed,
		"the duplicate in the same request got %+v, the first %+v", results[5], results[0])
	status := read[wire.CommandStatus](t, answer{body: results[4].Body})
	assert.Truef(t, status.Instance == third && string(status.Progress) == `{"percent":50}` && a.header.Get("Preference-Applied") == "wait",
		"%s, %v", results[4].Body, a.header)
}

func TestAScheduledCommandIsDoneWhenItsTimeHasCome(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.packed("1").String()
	var due time.Time
	var key string
	var at []string
	stamp := func(headers ...string) answer {
		t.Helper()
		return s.post("/v1/instances/"+id+"/stamp", key, `{}`, headers...)
	}
	var a answer
	for soon := time.Second; ; soon *= 2 { // a request that arrives after its time is done at once
		due, key = time.Now().Add(soon).UTC().Truncate(time.Millisecond), "in "+soon.String()
		at = []string{"Pawl-Not-Before", due.Format(time.RFC3339Nano)}
		if a = stamp(at...); a.status != 200 || soon > time.Minute {
			break
		}
		id = s.packed("1").String()
	}
	a.want(t, 202)
	status := read[wire.CommandStatus](t, a)
	assert.True(t, status.Status == transitions.Pending && status.RunAt.Equal(due) && status.Attempt == 0, a.body)
	a = stamp(append(at, "Prefer", "wait=60")...)
	a.want(t, 200)
	result := read[transitions.Result](t, a)
	assert.Truef(t, !result.At.Before(due) && result.Version == 2, "%s is before %v", a.body, due)
	again := stamp(at...)
	assert.Truef(t, string(again.body) == string(a.body) && again.status == 200, "the replay: %d %s", again.status, again.body)
	stamp().wantProblem(t, 422, workflow.KeyReused)
	far := time.Now().AddDate(1, 0, 0).UTC().Format(time.RFC3339)
	a = s.bulk("application/json", `[{"transition":"stamp","instance":"`+id+`","key":"far","not_before":"`+far+`"},
		{"transition":"stamp","instance":"`+id+`","key":"farther","not_before":"2999-01-01T00:00:00Z"},
		{"transition":"stamp","instance":"`+id+`","key":"farther","not_before":""},
		{"transition":"stamp","instance":"`+id+`","key":"farther","not_before":7}]`, "")
	results := read[[]wire.BulkResult](t, a)
	assert.True(t, results[0].Status == 202 && results[1].Status == 400 && results[2].Status == 400 && results[3].Status == 400, a.body)
	status = read[wire.CommandStatus](t, answer{body: results[0].Body})
	assert.Equalf(t, far, status.RunAt.Format(time.RFC3339), "%s, want it at", results[0].Body)
	a = s.post("/v1/instances/"+id+"/stamp", "later", `{}`, "Pawl-Not-Before", far)
	assert.Truef(t, a.status == 202 && a.header.Get("Retry-After") == "60", "%d, Retry-After %s", a.status, a.header.Get("Retry-After"))
}

func TestADryRunOfWhatTakesTimeBeginsNothing(t *testing.T) {
	s := newServer(t)
	id := s.booked().String()
	before := s.rows()
	a := s.do(http.MethodPost, "/v1/instances/"+id+"/deliver?dry_run=true", []byte(`{}`), "Content-Type", "application/json")
	a.want(t, 202)
	status := read[wire.CommandStatus](t, a)
	assert.Truef(t, a.header.Get("Location") == "" && a.header.Get("Pawl-Dry-Run") == "true" && status.Transition == "deliver",
		"%v %s", a.header, a.body)
	bulk := s.bulk("application/json", `[{"transition":"deliver","instance":"`+id+`"}]`, "?dry_run=true")
	results := read[[]wire.BulkResult](t, bulk)
	assert.Equal(t, 202, results[0].Status, bulk.body)
	after := s.rows()
	for table, n := range before {
		assert.Equalf(t, n, after[table], "%s has rows, had", table)
	}
}
