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
}

// dryRuns are commands that change nothing, with the requests of the same meaning.
var dryRuns = map[string][2]string{
	"ops correct --workflow order --business-key c:1 --state cancelled --reason test --dry-run": {
		"POST /v1/ops/instances/{id}/correct?dry_run=true", `{"state":"cancelled","reason":"test"}`},
}

func TestJSONIsHTTPAnswer(t *testing.T) {
	p := &person{t: t}
	s := serving(t, func(c *service.Config) {
		p.database = c.Database
		c.Auth.Keys = true
		var err error
		c.Sinks, err = sinks([]string{"log=file://" + filepath.Join(t.TempDir(), "log")}, nil, os.Getenv, io.Discard, c.Log)
		require.NoError(t, err)
	})
	_, key, stderr := p.calls(strings.Fields("keys create ann --grant operate:all --grant read --grant submit --grant keys --role *")...)
	key = strings.TrimSpace(key)
	require.NotEqual(t, "", key, stderr)
	p.gets(`submit order place {"customer":"c","cart":"1","total":900000,"currency":"EUR"} --key place`)
	p.gets(`submit order#c:1 pay {"method":"card"} --key pay --not-before ` + tomorrow())
	p.gets("ops pause order")
	id := idOf(p, "order#c:1")
	ask := func(request, body string) string {
		t.Helper()
		method, path, _ := strings.Cut(strings.ReplaceAll(request, "{id}", id), " ")
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+key)
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		require.Truef(t, err == nil && resp.StatusCode == 200, "%s: %d %s, %v", request, resp.StatusCode, text, err)
		return string(text)
	}
	compare := func(command, request, body string) {
		t.Helper()
		args := strings.Fields(strings.ReplaceAll(command, "{id}", id) + " -o json")
		if strings.HasPrefix(command, "auth") {
			t.Setenv("PAWL_TOKEN", key)
			args = append(args, "--server", s.URL())
		} else {
			args = append(args, "--database", p.database)
		}
		code, stdout, stderr := run(t.Context(), args...)
		require.Equalf(t, 0, code, "%s: exit, %s", command, stderr)
		var got, want any
		assert.NoError(t, json.Unmarshal([]byte(stdout), &got), command)
		answer := ask(request, body)
		assert.NoError(t, json.Unmarshal([]byte(answer), &want), request)
		assert.Equalf(t, shapeOf(want), shapeOf(got), "%s prints\n%s\nand %s answers\n%s", command, stdout, request, answer)
	}
	for command, request := range answers {
		compare(command, request, "")
	}
	for command, request := range dryRuns {
		compare(command, request[0], request[1])
	}
}

// shapeOf is a value without what differs between two looks at the same thing.
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
	p := newPerson(t)
	const place = `submit order place {"customer":"c-1","cart":"k-1","total":900000,"currency":"EUR"} --key k -o json`
	first := read[map[string]any](p, place)
	assert.True(t, first["state"] == "placed" && first["version"] == 1.0 && first["key"] == nil, first)
	assert.Equal(t, first, read[map[string]any](p, place))
	later := read[map[string]any](p, `submit order#c-1:k-1 pay {"method":"card"} --key l -o json --not-before `+tomorrow())
	assert.True(t, later["status"] == "pending" && later["key"] == "l" && later["scope"] != "", later)
}

func tomorrow() string { return time.Now().Add(24 * time.Hour).Format(time.RFC3339) }
