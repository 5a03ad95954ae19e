package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
)

// answers are commands with the HTTP requests whose answers they print with -o json. {id} is the instance order#c:1.
var answers = map[string]string{
	"get order#c:1":               "GET /v1/workflows/order/keys/c:1",
	"list --workflow order":       "GET /v1/instances?workflow=order",
	"list --state nowhere":        "GET /v1/instances?state=nowhere",
	"history order#c:1":           "GET /v1/instances/{id}/history",
	"history {id} --limit 1":      "GET /v1/instances/{id}/history?limit=1",
	"history {id} --after 99":     "GET /v1/instances/{id}/history?after=99",
	"children order#c:1":          "GET /v1/instances/{id}/children",
	"can order#c:1":               "GET /v1/instances/{id}/transitions",
	"auth can-i read":             "GET /v1/me?can=read",
	"verify":                      "GET /v1/ops/verify",
	"keys list --tenant default":  "GET /v1/keys",
	"ops counts --tenant default": "GET /v1/counts",
	"ops keys --tenant default":   "GET /v1/ops/keys",
	"ops show c:1":                "GET /v1/ops/instances/{id}",
	"ops commands":                "GET /v1/ops/commands",
	"ops stuck":                   "GET /v1/ops/stuck",
	"ops paused":                  "GET /v1/ops/paused",
	"ops paused --instances":      "GET /v1/ops/paused",
	"ops nodes":                   "GET /v1/ops/nodes?all_tenants=true",
	"ops retention":               "GET /v1/ops/retention",
	"ops versions":                "GET /v1/ops/versions",
	"ops migrations":              "GET /v1/ops/migrations",
	"ops sinks list":              "GET /v1/ops/sinks?all_tenants=true",
	"ops sinks show log":          "GET /v1/ops/sinks/log?all_tenants=true",
	"ops sinks dead log":          "GET /v1/ops/sinks/log/dead?all_tenants=true",
	"ops inbox list":              "GET /v1/ops/inbox",
	"ops inbox kept":              "GET /v1/ops/inbox/kept",
	"ops correct --workflow order --business-key c:1 --state cancelled --reason test --dry-run": `POST /v1/ops/instances/{id}/correct?dry_run=true ` +
		`{"state":"cancelled","reason":"test"}`,
}

// printed are commands whose JSON is no HTTP answer.
var printed = []string{"migrate status", "migrate plan", "migrate up", "migrate grants postgres --dry-run", "doctor", "diagram order",
	"version", "tickets rotate --drop", "tail --after start -n 1", "ops begin order 1", "ops resume order --tenant other"}

func TestJSONIsHTTPAnswer(t *testing.T) {
	u := &user{t: t}
	s := serving(t, func(c *service.Config) {
		u.database = c.Database
		c.Auth.Keys = true
		var err error
		c.Sinks, err = sinks([]string{"log=file://" + filepath.Join(t.TempDir(), "log")}, nil, os.Getenv, io.Discard, c.Log)
		require.NoError(t, err)
	})
	_, key, stderr := u.calls(strings.Fields("keys create ann --grant operate:all --grant read --grant submit --grant keys --role *")...)
	key = strings.TrimSpace(key)
	require.NotEqual(t, "", key, stderr)
	u.gets(`submit order place {"customer":"c","cart":"1","total":900000,"currency":"EUR"} --key place`)
	u.gets(`submit order#c:1 pay {"method":"card"} --key pay --not-before ` + tomorrow())
	u.gets("ops pause order")
	id := idOf(u, "order#c:1")
	ask := func(request string) string {
		t.Helper()
		method, path, _ := strings.Cut(strings.ReplaceAll(request, "{id}", id), " ")
		path, body, _ := strings.Cut(path, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode, request)
		return string(text)
	}
	t.Setenv("PAWL_TOKEN", key)
	for command, request := range answers {
		at := []string{"-o", "json", "--database", u.database}
		if strings.HasPrefix(command, "auth") {
			at = []string{"-o", "json", "--server", s.URL()}
		}
		code, stdout, stderr := run(t.Context(), append(strings.Fields(strings.ReplaceAll(command, "{id}", id)), at...)...)
		require.Equal(t, 0, code, command, stderr)
		var got, want any
		require.NoError(t, json.Unmarshal([]byte(stdout), &got), command)
		require.NoError(t, json.Unmarshal([]byte(ask(request)), &want), request)
		assert.Equal(t, shapeOf(want), shapeOf(got), command)
	}
	for _, command := range printed {
		_, stdout, _ := run(t.Context(), append(strings.Fields(command), "-o", "json", "--database", u.database)...)
		assert.True(t, json.Valid([]byte(stdout)), command)
	}
}

func TestAllCommandsHaveOutputFlag(t *testing.T) {
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		if c.Runnable() && !c.HasSubCommands() && c.Name() != "serve" {
			assert.NotNil(t, c.Flag("output"), c.CommandPath())
		}
		for _, child := range c.Commands() {
			check(child)
		}
	}
	check(CommandLine())
}

// shapeOf returns a value without times, numbers and members that differ between two reads.
func shapeOf(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, member := range v {
			switch name {
			case "next", "next_after", "scopes", "actor", "by", "method", "proof": // of a page, of the node, of who asks
				continue
			}
			out[name] = shapeOf(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = shapeOf(v[i])
		}
		return out
	case string:
		if _, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return "time"
		}
	case float64:
		return "number"
	}
	return v
}

func TestSubmitPrintsHTTPAnswer(t *testing.T) {
	u := newUser(t)
	const place = `submit order place {"customer":"c-1","cart":"k-1","total":900000,"currency":"EUR"} --key k -o json`
	first := read[map[string]any](u, place)
	assert.Equal(t, "placed", first["state"])
	assert.Nil(t, first["key"])
	assert.Equal(t, first, read[map[string]any](u, place))
	later := read[map[string]any](u, `submit order#c-1:k-1 pay {"method":"card"} --key l -o json --not-before `+tomorrow())
	assert.Equal(t, "pending", later["status"])
	assert.Equal(t, "l", later["key"])
}

func tomorrow() string { return time.Now().Add(24 * time.Hour).Format(time.RFC3339) }
