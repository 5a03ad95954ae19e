package service

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/internal/localpg"
)

// written is a concurrent buffer.
type written struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

// No credential, however it is sent, appears in a log, answer, metric, table or statement.
func TestNoSecretIsWrittenAnywhere(t *testing.T) {
	server, err := localpg.Start(t.Context(), localpg.Options{Ephemeral: true,
		Settings: map[string]string{"shared_preload_libraries": "pg_stat_statements"}})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, server.Stop())
	})
	idp, log := authtest.NewProvider(t), &written{}
	s := service(t, func(c *Config) {
		c.Database, c.Auth.JWT, c.Auth.Keys, c.AccessLog = server.URL(), tokensOf(idp), true, true
		c.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	const every = "read stream submit act-as import operate operate:all keys"
	good := idp.Token(map[string]any{"scope": every})
	create := func(name string) shown {
		return must(t, s, good, "POST", "/v1/keys", `{"name":"`+name+`","grants":["read","stream","submit","operate:all"]}`)
	}
	key, rotated, revoked := create("one"), create("rotated"), create("revoked")
	fresh := must(t, s, good, "POST", "/v1/keys/"+rotated.ID+"/rotate", `{"seconds":60}`).Key
	must(t, s, good, "DELETE", "/v1/keys/"+revoked.ID, "")
	const narrow = `{"grants":["read:order","stream:order"],"cookie":true}`
	credentials := map[string]string{
		"a good token":         good,
		"one without a grant":  idp.Token(nil),
		"an expired one":       idp.Token(map[string]any{"exp": 1}),
		"one for others":       idp.Token(map[string]any{"aud": "others"}),
		"of an unknown key":    authtest.NewKey(t, "unknown", "ES256").Sign(t, authtest.Claims(nil)),
		"of another key":       authtest.NewKey(t, "first", "ES256").Sign(t, authtest.Claims(nil)),
		"an API key":           key.Key,
		"a former one":         rotated.Key,
		"a fresh one":          fresh,
		"a revoked one":        revoked.Key,
		"a ticket":             must(t, s, good, "POST", "/v1/tickets", narrow).Ticket,
		"a ticket of a key":    must(t, s, key.Key, "POST", "/v1/tickets", narrow).Ticket,
		"what is none":         "hunter2-hunter2-hunter2",
		"what looks like one":  "pawl_hunter2_" + strings.Repeat("hunter3", 6),
		"what is like another": "pawlt_hunter4hunter4." + strings.Repeat("hunter5", 6) + ".hunter6hunter6",
	}
	seen := &written{} // all that anybody could look at
	for _, credential := range credentials {
		for _, header := range []string{"Bearer " + credential, "Basic " + credential, credential} {
			for _, r := range []struct{ method, path string }{
				{"GET", "/v1/me?can=read"}, {"GET", "/v1/instances"}, {"POST", "/v1/workflows/order/place"}, {"POST", "/v1/commands"},
				{"GET", "/v1/nowhere"}, {"GET", "/v1/instances?access_token=" + credential}, {"GET", "/v1/commands/order/" + credential},
				{"GET", "/v1/ops/keys"}, {"GET", "/metrics"},
			} {
				_ = do(t, s, r.method, r.path, http.Header{"Authorization": {header}, "Idempotency-Key": {fmt.Sprint(time.Now().UnixNano())}},
					`{"customer":"c","cart":"k","total":1,"currency":"EUR"}`).Write(seen)
			}
		}
		ws, response, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.URL(), "http")+"/v1/stream",
			http.Header{"Authorization": {"Bearer " + credential}, "Sec-WebSocket-Protocol": {"pawl.v1"}})
		if err == nil {
			_ = ws.Close()
		} else if response != nil {
			_ = response.Write(seen)
		}
	}
	_ = do(t, s, "GET", "/metrics", http.Header{"Authorization": {"Bearer " + good}}, "").Write(seen)
	told := looks(t, server.URL(), seen)
	for name, credential := range credentials {
		assert.Truef(t, len(credential) >= 20, "%s is %q", name, credential)
		if strings.HasPrefix(credential, "pawl_") {
			credential = strings.ReplaceAll(credential, "_", ".") // the id of a key is no secret
		}
		for part := range strings.SplitSeq(credential, ".") {
			if len(part) < 16 {
				continue
			}
			for where, text := range map[string]string{"the log": log.String(), "an answer": seen.String()} {
				i := strings.Index(text, part)
				assert.Truef(t, i < 0, "%s: %s has %.300q", name, where, text[max(0, i-200):i+len(part)])
			}
		}
	}
	// a few lines a second, of any of them
	if !strings.Contains(seen.String(), `pawl_auth_refused_total{reason="expired"}`) || !strings.Contains(log.String(), "reason=") {
		t.Error("nothing was looked at")
	}
	if !told {
		t.Log("this PostgreSQL has no pg_stat_statements")
	}
}

// shown is a secret that is shown once.
type shown struct{ ID, Key, Ticket string }

// must sends a request that has to succeed.
func must(t *testing.T, s *Service, credential, method, path, body string) (out shown) {
	t.Helper()
	status, text := send(t, s, method, path, credential, body)
	require.Less(t, status, 300, text)
	if text != "" {
		require.NoError(t, json.Unmarshal([]byte(text), &out))
	}
	return out
}

// looks takes note of every row, and of every statement that was run, where the server has taken note of those.
func looks(t *testing.T, url string, seen io.Writer) (told bool) {
	t.Helper()
	db, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = db.Close(context.WithoutCancel(t.Context())) }()
	if _, err := db.Exec(t.Context(), "CREATE EXTENSION pg_stat_statements"); err == nil {
		told = true
		rows(t, db, seen, "SELECT query FROM pg_stat_statements")
	}
	rows(t, db, seen, "SELECT query FROM pg_stat_activity")
	var tables []string
	require.NoError(t, db.QueryRow(t.Context(), `SELECT array_agg(oid::regclass::text) FROM pg_class
		WHERE relnamespace = 'pawl'::regnamespace AND relkind = 'r'`).Scan(&tables))
	for _, name := range tables {
		rows(t, db, seen, "SELECT x::text FROM "+name+" x")
	}
	return told
}

func rows(t *testing.T, db *pgx.Conn, seen io.Writer, sql string) {
	t.Helper()
	found, err := db.Query(t.Context(), sql)
	require.NoError(t, err)
	texts, err := pgx.CollectRows(found, pgx.RowTo[*string])
	require.NoError(t, err)
	for _, text := range texts {
		if text != nil {
			_, _ = fmt.Fprintln(seen, *text)
		}
	}
}
