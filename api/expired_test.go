package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
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

func TestACallerSaysForHowLongItsKeyIsGood(t *testing.T) {
	s := newServer(t)
	kept := func(key string) (kept string) {
		require.NoError(t, s.pool.QueryRow(t.Context(),
			`SELECT (expires_at - finished_at) || coalesce(' ' || (forget_at - expires_at), ' nothing')
			FROM pawl.command WHERE key = $1`, key).Scan(&kept))
		return kept
	}
	const path, body = "/v1/workflows/parcel/pack", `{"to":"Wien"}`
	s.post(path, "a", body, "Pawl-Replay-For", "60", "Pawl-Tombstone-For", "3600").want(t, http.StatusCreated)
	s.post(path, "a", body).want(t, http.StatusCreated) // the same request
	s.bulk("application/json",
		`[{"workflow":"parcel","transition":"pack","key":"b","payload":{"to":"Wien"},"replay_for":120,"tombstone_for":60},
		{"workflow":"parcel","transition":"pack","key":"c","payload":{"to":"Wien"}}]`, "").want(t, http.StatusOK)
	for key, want := range map[string]string{"a": "00:01:00 01:00:00", "b": "00:02:00 00:01:00", "c": "1 day nothing"} {
		assert.Equalf(t, want, kept(key), "%s is kept for", key)
	}
	for _, headers := range [][]string{{"Pawl-Replay-For", "2592001"}, {"Pawl-Tombstone-For", "forever"}} {
		p := s.post(path, "d", body, headers...).wantProblem(t, http.StatusBadRequest, workflow.InvalidRequest)
		assert.Contains(t, p.Detail, "at most", headers)
		s.do(http.MethodDelete, "/v1/commands/parcel:pack/a", nil, headers...).wantProblem(t, http.StatusBadRequest, workflow.InvalidRequest)
	}
}

func TestALatePollerSeesThatACommandWasGivenUp(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	const path, body = "/v1/workflows/parcel/pack", `{"to":"Wien"}`
	due := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	s.post(path, "k", body, "Pawl-Not-Before", due).want(t, http.StatusAccepted)
	s.exec("UPDATE pawl.command SET run_at = now() - interval '25 hours' WHERE key = 'k'") // as if no node had been there
	var status wire.CommandStatus
	await.Eventually(t, "the command is given up", func() bool {
		status = read[wire.CommandStatus](t, s.get("/v1/commands/parcel:pack/k"))
		return status.Status == transitions.FailedFinal
	})
	assert.Truef(t, status.Code == http.StatusRequestTimeout && strings.Contains(string(status.Problem), `"command_abandoned"`),
		"got %+v", status)
	a := s.post(path, "k", body, "Pawl-Not-Before", due)
	p := a.wantProblem(t, http.StatusRequestTimeout, workflow.CommandAbandoned)
	assert.Truef(t, p.Final && a.header.Get("Idempotent-Replayed") == "true", "got %+v", p)
}
