package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/workflow"
)

func (s *server) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.pool.Exec(s.t.Context(), sql, args...); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// Before and after retention has come by, a key past its horizon is refused
// wherever it is asked for, and by whichever means.
func TestAKeyPastItsHorizonIsGoneEverywhere(t *testing.T) {
	s := newServer(t)
	const path, body = "/v1/workflows/parcel/pack", `{"to":"Wien"}`
	s.post(path, "k", body).want(t, http.StatusCreated)
	const status = "/v1/commands/parcel:pack/k"
	s.get(status).want(t, http.StatusOK)
	for name, sql := range map[string]string{
		"1 expired": `UPDATE pawl.command SET expires_at = now() - interval '1 second' WHERE key = 'k'`,
		"2 a tombstone": `UPDATE pawl.command SET status = 'expired', code = NULL, state = NULL, body = NULL, attempt = NULL, revision = NULL,
			updated_at = NULL,
			expires_at = now() + interval '1 hour' WHERE key = 'k'`,
		"3 for ever": `UPDATE pawl.command SET status = 'expired', code = NULL, state = NULL, body = NULL, expires_at = NULL WHERE key = 'k'`,
	} {
		s.exec(`UPDATE pawl.command SET status = 'succeeded', code = 201, body = '{}', expires_at = now() WHERE key = 'k'`)
		s.exec(sql)
		t.Run(name, func(t *testing.T) {
			before := s.rows()["audit"]
			stream := []string{"Accept", "text/event-stream"}
			for what, a := range map[string]answer{
				"a duplicate":                   s.post(path, "k", body),
				"a duplicate that waits":        s.post(path, "k", body, "Prefer", "wait=5"),
				"its status":                    s.get(status),
				"its status, known and awaited": s.get(status, "If-None-Match", `"0"`, "Prefer", "wait=5"),
				"its stream":                    s.get(status, stream...),
				"its stream, again":             s.get(status, append(stream, "Last-Event-ID", "0")...),
				"a cancel":                      s.do(http.MethodDelete, status, nil),
				"an operator":                   s.post("/v1/ops/commands/retry", "op", `{"scope":"parcel:pack","key":"k"}`),
				"one who resolves":              s.post("/v1/ops/commands/resolve", "op", `{"scope":"parcel:pack","key":"k"}`),
				"one who gives up":              s.post("/v1/ops/commands/abandon", "op", `{"scope":"parcel:pack","key":"k"}`),
			} {
				t.Log(what)
				a.wantProblem(t, http.StatusGone, workflow.KeyExpired)
			}
			s.post(path, "k", `{"to":"Graz"}`).wantProblem(t, http.StatusUnprocessableEntity, workflow.KeyReused)
			again := `[{"workflow":"parcel","transition":"pack","key":"k","payload":` + body + `}]`
			many := read[[]wire.BulkResult](t, s.bulk("application/json", again, ""))
			if len(many) != 1 || many[0].Status != http.StatusGone || !strings.Contains(string(many[0].Body), string(workflow.KeyExpired)) {
				t.Errorf("in bulk: %+v", many)
			}
			c := s.dial()
			c.send(`{"op":"watch","id":"w","scope":"parcel:pack","key":"k"}`)
			m := c.next()
			assert.Truef(t, m.Op == "error" && m.Code == workflow.KeyExpired, "a watch: %+v", m)
			after := s.rows()["audit"]
			assert.Equalf(t, before, after, "%d transitions more", after-before)
		})
	}
}
