package api_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/auth/jwt"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/workflow"
)

// newWithoutEngine is a server that takes tokens and has no engine behind it, and so no database.
func newWithoutEngine(t *testing.T, config ...func(*api.Config)) *guarded {
	t.Helper()
	g := &guarded{server: &server{t: t, log: &lockedBuffer{}}, idp: authtest.NewProvider(t), instance: uuid.New(), key: "000000000000"}
	v, err := jwt.New(jwt.Config{Issuer: authtest.Issuer, Audience: []string{authtest.Audience}, Algorithms: []string{"ES256"},
		Keys: g.idp.Set()})
	require.NoError(t, err)
	c := api.Config{Identify: api.Bearer(v.Verify), Logger: slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, change := range config {
		change(&c)
	}
	a, err := api.New(&engine.Engine{}, c)
	require.NoError(t, err)
	listener := httptest.NewServer(declared(t, a, nil))
	t.Cleanup(listener.Close)
	g.url = listener.URL
	return g
}

// counted are refusals by their reason.
type counted struct {
	mu sync.Mutex
	by map[string]int
}

func (c *counted) add(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]int{}
	}
	c.by[reason]++
}

// A refusal is counted by its reason and logged, and asks nothing of the engine, so of the database: neither a read nor a write.
func TestARefusalAsksNothingOfTheDatabase(t *testing.T) {
	var refused counted
	g := newWithoutEngine(t, func(c *api.Config) { c.Refused = refused.add })
	want := map[string]int{}
	wrong := map[auth.Reason][]string{auth.Missing: nil, auth.Malformed: by("x.y.z"),
		auth.Expired: by(g.idp.Token(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}))}
	for _, r := range api.Routes() {
		if r.Grant == api.Public {
			continue
		}
		for reason, headers := range wrong {
			name := string(reason)
			if reason == auth.Missing {
				name = "none"
			}
			wantUnknown(t, name, g.send(g.fill(&r, headers...)))
			want[string(reason)]++
		}
		if r.Grant != api.AnyCaller {
			g.send(g.fill(&r, g.with(but(r.Grant))...)).wantProblem(t, 403, workflow.Forbidden)
			want["grant"]++
		}
		if streams := strings.Contains(r.Path, "events"); streams {
			g.send(g.fill(&r, append(g.with(but(api.Streaming)), "Accept", "text/event-stream")...)).wantProblem(t, 403, workflow.Forbidden)
			want["grant"]++
		}
	}
	refused.mu.Lock()
	defer refused.mu.Unlock()
	log := g.log.String()
	for reason, n := range want {
		assert.Equalf(t, n, refused.by[reason], "%s are counted of", reason)
		assert.Containsf(t, log, "reason="+reason, "the log does not say %s", reason)
	}
	assert.Lenf(t, refused.by, len(want), "counted, refused %v", want)
}

// Whoever sends too many commands has none of them looked at.
func TestABulkOverTheRateIsNotLookedAt(t *testing.T) {
	g := newWithoutEngine(t, func(c *api.Config) { c.Limits.Rate, c.Limits.BulkItems = 0.0001, 2 })
	narrow := g.with("submit:parcel")
	g.post("/v1/commands?dry_run=true", "", `[{},{}]`, narrow...).want(t, http.StatusOK)
	item := `{"transition":"stamp","instance":"` + g.instance.String() + `","key":"k"}` // of which the workflow would be looked up
	g.post("/v1/commands", "", "["+item+"]", narrow...).wantProblem(t, 429, workflow.RateLimited)
}
