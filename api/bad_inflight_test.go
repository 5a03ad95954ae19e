package api_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// badCase is a request that must leave no trace. In its texts {id} is a delivery
// that is under way, {scope} and k are its command, {stuck} is the scope of a
// command k that waits for an operator.
type badCase struct {
	name, method, path, body string
	headers                  []string
	code                     workflow.Code
}

const (
	aCommand = "/v1/commands/{scope}/k"
	anOp     = "/v1/ops/commands/abandon"
	aTarget  = `{"scope":"{stuck}","key":"k"}`
)

func notBefore(values ...string) (headers []string) {
	for _, v := range values {
		headers = append(headers, "Pawl-Not-Before", v)
	}
	return headers
}

var badSchedules = []badCase{
	{"empty", "POST", "/v1/instances/{id}/deliver", `{}`, notBefore(""), workflow.InvalidRequest},
	{"a word", "POST", "/v1/instances/{id}/deliver", `{}`, notBefore("tomorrow"), workflow.InvalidRequest},
	{"a number", "POST", "/v1/instances/{id}/deliver", `{}`, notBefore("1890000000"), workflow.InvalidRequest},
	{"no zone", "POST", "/v1/instances/{id}/deliver", `{}`, notBefore("2030-01-01T00:00:00"), workflow.InvalidRequest},
	{"no day", "POST", "/v1/instances/{id}/deliver", `{}`, notBefore("2030-02-30T00:00:00Z"), workflow.InvalidRequest},
	{"never", "POST", "/v1/instances/{id}/deliver", `{}`, notBefore("9999-12-31T23:59:59Z"), workflow.InvalidRequest},
	{"the year 1", "POST", "/v1/instances/{id}/deliver", `{}`, notBefore("0001-01-01T00:00:00Z"), workflow.InvalidRequest},
	{"two", "POST", "/v1/instances/{id}/deliver", `{}`, notBefore("2030-01-01T00:00:00Z", "2030-01-01T00:00:00Z"), workflow.InvalidRequest},
	{"huge", "POST", "/v1/instances/{id}/deliver", `{}`, notBefore(strings.Repeat("2", 10_000)), workflow.InvalidRequest},
	{"invalid UTF-8", "POST", "/v1/instances/{id}/deliver", `{}`, notBefore("\xff"), workflow.InvalidRequest},
	{"of a creation", "POST", "/v1/workflows/delivery/book", `{}`, notBefore("soon"), workflow.InvalidRequest},
	{"of a bulk request", "POST", "/v1/commands", `[]`, notBefore("2030-01-01T00:00:00Z"), workflow.InvalidRequest},
	{"of cancelling", "DELETE", aCommand, "", notBefore("2030-01-01T00:00:00Z"), workflow.InvalidRequest},
	{"of an operation", "POST", anOp, aTarget, notBefore("2030-01-01T00:00:00Z"), workflow.InvalidRequest},
	{"of a pause", "POST", "/v1/ops/instances/{id}/pause", `{}`, notBefore("2030-01-01T00:00:00Z"), workflow.InvalidRequest},
	{"of a workflow's pause", "PUT", "/v1/ops/paused/delivery", `{}`, notBefore("2030-01-01T00:00:00Z"), workflow.InvalidRequest},
	{"misspelt", "POST", "/v1/instances/{id}/deliver", `{}`, []string{"Pawl-Notbefore", "2030-01-01T00:00:00Z"}, workflow.InvalidRequest},
}

var badLooks = []badCase{
	{"neither JSON nor stream", "GET", aCommand, "", []string{"Accept", "text/html"}, workflow.NotAcceptable},
	{"unknown parameter", "GET", aCommand + "?wait=5", "", nil, workflow.InvalidRequest},
	{"last event is a word", "GET", aCommand, "", []string{"Accept", "text/event-stream", "Last-Event-ID", "x"}, workflow.InvalidRequest},
	{"last event is negative", "GET", aCommand, "", []string{"Accept", "text/event-stream", "Last-Event-ID", "-1"}, workflow.InvalidRequest},
	{"last event is huge", "GET", aCommand, "", []string{"Accept", "text/event-stream", "Last-Event-ID", "99999999999999999999"},
		workflow.InvalidRequest},
	{"last event with zeros", "GET", aCommand, "", []string{"Accept", "text/event-stream", "Last-Event-ID", "007"}, workflow.InvalidRequest},
	{"two last events", "GET", aCommand, "", []string{"Accept", "text/event-stream", "Last-Event-ID", "1", "Last-Event-ID", "1"},
		workflow.InvalidRequest},
	{"a stream of nothing", "GET", "/v1/commands/s/nothing", "", []string{"Accept", "text/event-stream"}, workflow.CommandNotFound},
	{"waiting for nothing", "GET", "/v1/commands/s/nothing", "", []string{"If-None-Match", `"1"`, "Prefer", "wait=60"},
		workflow.CommandNotFound},
}

var badCancels = []badCase{
	{"nothing", "DELETE", "/v1/commands/s/nothing", "", nil, workflow.CommandNotFound},
	{"no key", "DELETE", "/v1/commands/s/", "", nil, workflow.KeyMissing},
	{"no slash", "DELETE", "/v1/commands/s", "", nil, workflow.NotFound},
	{"all", "DELETE", "/v1/commands", "", nil, workflow.MethodNotAllowed},
	{"NUL in the scope", "DELETE", "/v1/commands/%00/k", "", nil, workflow.ScopeInvalid},
	{"NUL in the key", "DELETE", "/v1/commands/s/%00", "", nil, workflow.KeyInvalid},
	{"invalid UTF-8", "DELETE", "/v1/commands/s/%ff", "", nil, workflow.KeyInvalid},
	{"long key", "DELETE", "/v1/commands/s/" + strings.Repeat("k", 256), "", nil, workflow.KeyInvalid},
	{"long scope", "DELETE", "/v1/commands/" + strings.Repeat("s", 256) + "/k", "", nil, workflow.ScopeInvalid},
	{"unknown parameter", "DELETE", aCommand + "?force=true", "", nil, workflow.InvalidRequest},
	{"with a version", "DELETE", aCommand, "", []string{"If-Match", `"1"`}, workflow.InvalidRequest},
	{"long actor", "DELETE", aCommand, "", []string{"Pawl-Actor", strings.Repeat("a", 256)}, workflow.InvalidRequest},
	{"Pawl's own", "DELETE", "/v1/commands/pawl:timer:{id}:late/1", "", nil, workflow.ScopeInvalid},
}

var badOperations = []badCase{
	{"no key", "POST", anOp, aTarget, []string{"Idempotency-Key", ""}, workflow.KeyMissing},
	{"Pawl's own scope", "POST", anOp, aTarget, []string{"Idempotency-Scope", "pawl:x"}, workflow.ScopeInvalid},
	{"Pawl's own actor", "POST", anOp, aTarget, []string{"Pawl-Actor", "pawl:x"}, workflow.InvalidRequest},
	{"with a version", "POST", anOp, aTarget, []string{"If-Match", `"1"`}, workflow.InvalidRequest},
	{"dry run", "POST", anOp + "?dry_run=true", aTarget, nil, workflow.InvalidRequest},
	{"XML", "POST", anOp, aTarget, []string{"Content-Type", "text/xml"}, workflow.UnsupportedMedia},
	{"no such action", "POST", "/v1/ops/commands/forget", aTarget, nil, workflow.NotFound},
	{"an instance's action", "POST", "/v1/ops/commands/pause", aTarget, nil, workflow.NotFound},
	{"NUL for an action", "POST", "/v1/ops/commands/%00", aTarget, nil, workflow.NotFound},
	{"another method", "GET", anOp, "", nil, workflow.MethodNotAllowed},
	{"no body", "POST", anOp, "", nil, workflow.ScopeMissing},
	{"white space", "POST", anOp, " ", nil, workflow.InvalidRequest},
	{"null", "POST", anOp, `null`, nil, workflow.InvalidRequest},
	{"an array", "POST", anOp, `[]`, nil, workflow.InvalidRequest},
	{"no JSON", "POST", anOp, `{"scope"`, nil, workflow.InvalidRequest},
	{"two bodies", "POST", anOp, aTarget + aTarget, nil, workflow.InvalidRequest},
	{"no target's key", "POST", anOp, `{"scope":"{stuck}"}`, nil, workflow.KeyMissing},
	{"no target's scope", "POST", anOp, `{"key":"k"}`, nil, workflow.ScopeMissing},
	{"a number for a key", "POST", anOp, `{"scope":"{stuck}","key":7}`, nil, workflow.InvalidRequest},
	{"NUL in the scope", "POST", anOp, `{"scope":"\u0000","key":"k"}`, nil, workflow.ScopeInvalid},
	{"NUL in the key", "POST", anOp, `{"scope":"{stuck}","key":"\u0000"}`, nil, workflow.KeyInvalid},
	{"invalid UTF-8", "POST", anOp, "{\"scope\":\"\xff\",\"key\":\"k\"}", nil, workflow.InvalidRequest},
	{"long target", "POST", anOp, `{"scope":"` + strings.Repeat("s", 256) + `","key":"k"}`, nil, workflow.ScopeInvalid},
	{"unknown member", "POST", anOp, `{"scope":"{stuck}","key":"k","force":true}`, nil, workflow.InvalidRequest},
	{"a member twice", "POST", anOp, `{"scope":"{stuck}","key":"k","key":"k"}`, nil, workflow.InvalidRequest},
	{"NUL in the reason", "POST", anOp, `{"scope":"{stuck}","key":"k","reason":"\u0000"}`, nil, workflow.InvalidRequest},
	{"long reason", "POST", anOp, `{"scope":"{stuck}","key":"k","reason":"` + strings.Repeat("r", 4097) + `"}`, nil, workflow.InvalidRequest},
	{"a list of reasons", "POST", anOp, `{"scope":"{stuck}","key":"k","reason":["a"]}`, nil, workflow.InvalidRequest},
	{"too large", "POST", anOp, `{"scope":"{stuck}","key":"k","reason":"` + strings.Repeat("r", 2<<20) + `"}`, nil, workflow.TooLarge},
	{"no such command", "POST", anOp, `{"scope":"s","key":"k"}`, nil, workflow.CommandNotFound},
	{"another tenant's", "POST", anOp, aTarget, []string{"Pawl-Tenant", "other"}, workflow.CommandNotFound},
	{"a result of giving up", "POST", anOp, `{"scope":"{stuck}","key":"k","result":{"signed":"x"}}`, nil, workflow.InvalidRequest},
	{"a result of another type", "POST", "/v1/ops/commands/resolve", `{"scope":"{stuck}","key":"k","result":7}`, nil, workflow.InvalidPayload},
	{"a result with a number past all", "POST", "/v1/ops/commands/resolve", `{"scope":"{stuck}","key":"k","result":1e400}`, nil,
		workflow.InvalidPayload},
	{"a huge result", "POST", "/v1/ops/commands/resolve", `{"scope":"{stuck}","key":"k","result":{"signed":"` + strings.Repeat("x", 1<<20) +
		`"}}`, nil, workflow.TooLarge},

	{"instance is a word", "POST", "/v1/ops/instances/x/pause", `{}`, nil, workflow.InvalidRequest},
	{"zero instance", "POST", "/v1/ops/instances/" + uuid.Nil.String() + "/pause", `{}`, nil, workflow.InvalidRequest},
	{"no such instance", "POST", "/v1/ops/instances/" + uuid.NewString() + "/pause", `{}`, nil, workflow.InstanceNotFound},
	{"another tenant's instance", "POST", "/v1/ops/instances/{id}/pause", `{}`, []string{"Pawl-Tenant", "other"}, workflow.InstanceNotFound},
	{"a command's action", "POST", "/v1/ops/instances/{id}/retry", `{}`, nil, workflow.NotFound},
	{"a reason of another type", "POST", "/v1/ops/instances/{id}/pause", `{"reason":7}`, nil, workflow.InvalidRequest},
	{"a long reason to pause", "POST", "/v1/ops/instances/{id}/pause", `{"reason":"` + strings.Repeat("r", 4097) + `"}`, nil,
		workflow.InvalidRequest},
	{"a huge body", "POST", "/v1/ops/instances/{id}/pause", `{"reason":"` + strings.Repeat("r", 1<<20) + `"}`, nil, workflow.TooLarge},
	{"a target of a pause", "POST", "/v1/ops/instances/{id}/pause", aTarget, nil, workflow.InvalidRequest},

	{"no such workflow", "PUT", "/v1/ops/paused/nothing", `{}`, nil, workflow.WorkflowNotFound},
	{"resume no such workflow", "DELETE", "/v1/ops/paused/nothing", "", nil, workflow.WorkflowNotFound},
	{"NUL in a workflow", "PUT", "/v1/ops/paused/%00", `{}`, nil, workflow.InvalidRequest},
	{"a long workflow", "DELETE", "/v1/ops/paused/" + strings.Repeat("w", 256), "", nil, workflow.InvalidRequest},
	{"a workflow's pause with more", "PUT", "/v1/ops/paused/delivery", `{"until":"noon"}`, nil, workflow.InvalidRequest},
	{"NUL in a workflow's reason", "PUT", "/v1/ops/paused/delivery", `{"reason":"\u0000"}`, nil, workflow.InvalidRequest},
	{"a parameter of a pause", "PUT", "/v1/ops/paused/delivery?all=true", `{}`, nil, workflow.InvalidRequest},
	{"post a pause", "POST", "/v1/ops/paused/delivery", `{}`, nil, workflow.MethodNotAllowed},

	{"a cursor that is a word", "GET", "/v1/ops/stuck?cursor=next", "", nil, workflow.InvalidRequest},
	{"a cursor of the instances", "GET", "/v1/ops/stuck?cursor=AQGTaw56bHAAgAAAAAAAAAE", "", nil, workflow.InvalidRequest},
	{"a cursor to nowhere", "GET", "/v1/ops/stuck?cursor=AoAAAAAAAAAAAXNr", "", nil, workflow.InvalidRequest},
	{"a huge cursor", "GET", "/v1/ops/stuck?cursor=" + strings.Repeat("A", 1025), "", nil, workflow.InvalidRequest},
	{"limit 0", "GET", "/v1/ops/stuck?limit=0", "", nil, workflow.InvalidRequest},
	{"unknown parameter", "GET", "/v1/ops/stuck?state=x", "", nil, workflow.InvalidRequest},
	{"NUL in a stuck workflow", "GET", "/v1/ops/stuck?workflow=%00", "", nil, workflow.InvalidRequest},
	{"a parameter of the paused", "GET", "/v1/ops/paused?colour=x", "", nil, workflow.InvalidRequest},
}

func TestInFlight_BadInput(t *testing.T) {
	s := newServer(t)
	status, address := s.accepted("k")
	v := s.visit()
	stuck := s.stuck("k")
	fill := strings.NewReplacer("{id}", status.Instance.String(), "{scope}", status.Scope, "{stuck}", stuck.Scope)
	shown := func() string { return string(s.get(address).body) + string(s.get("/v1/ops/stuck").body) }
	before, commands := s.rows(), shown()
	for group, cases := range map[string][]badCase{"schedules": badSchedules, "looks": badLooks, "cancels": badCancels,
		"operations": badOperations} {
		t.Run(group, func(t *testing.T) {
			for _, c := range cases {
				headers := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"bad"}}
				for i := 0; i < len(c.headers); i += 2 {
					if c.headers[i] == "Content-Type" || c.headers[i] == "Idempotency-Key" {
						headers.Del(c.headers[i])
					}
					headers.Add(c.headers[i], c.headers[i+1])
				}
				r, err := http.NewRequestWithContext(t.Context(), c.method, s.url+fill.Replace(c.path), strings.NewReader(fill.Replace(c.body)))
				require.NoError(t, err, c.name)
				r.Header = headers
				a := s.send(r)
				a.wantProblem(t, c.code.Info().Status, c.code)
				require.Truef(t, !t.Failed() && len(a.body) <= 2000, "%s: %d bytes", c.name, len(a.body))
			}
		})
	}
	after := s.rows()
	assert.Truef(t, maps.Equal(before, after), "rows before %v, after %v", before, after)
	assert.Equal(t, commands, shown(), "the commands and")
	v.signed("Ida")
	await.Eventually(t, "the command has succeeded", func() bool {
		return read[wire.CommandStatus](t,
			s.get(address)).Status == transitions.Succeeded
	})
}

func TestCallersTimesAreNotTakenForOthers(t *testing.T) {
	s := newServer(t)
	id := s.packed("1").String()
	due := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	a := s.post("/v1/instances/"+id+"/stamp", "k", `{}`, "Pawl-Not-Before", due)
	a.want(t, 202)
	before := s.rows()
	for _, other := range []string{time.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339), "2020-01-01T00:00:00Z"} {
		s.post("/v1/instances/"+id+"/stamp", "k", `{}`, "Pawl-Not-Before", other).wantProblem(t, 422, workflow.KeyReused)
	}
	again := s.post("/v1/instances/"+id+"/stamp", "k", `{}`, "Pawl-Not-Before", due)
	assert.Truef(t, again.status == 202 && again.header.Get("Idempotent-Replayed") == "true" && string(again.body) == string(a.body),
		"%d %s", again.status, again.body)
	after := s.rows()
	assert.Truef(t, maps.Equal(before, after), "rows before %v, after %v", before, after)
}
