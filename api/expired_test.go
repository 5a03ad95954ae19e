package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/workflow"
)

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
