package api_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

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
