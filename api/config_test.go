package api_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/engine"
)

func TestNewChecksConfig(t *testing.T) {
	verify := func(http.Header, []byte) (string, error) { return "", nil }
	inbox := func(name string, c api.Consumer) api.Config {
		return api.Config{Inbox: map[string]api.Consumer{name: c}}
	}
	configs := map[string][]api.Config{
		"Stream.MaxLag":         {{Stream: api.Stream{MaxLag: -1}}},
		"Limits.Memory":         {{Limits: api.Limits{Memory: 1 << 20}}},
		"Limits.Rate":           {{Limits: api.Limits{Rate: -1}}, {Limits: api.Limits{Rate: math.NaN()}}, {Limits: api.Limits{Rate: math.Inf(1)}}},
		"Limits.CredentialRate": {{Limits: api.Limits{CredentialRate: -1}}},
		"Burst":                 {{Limits: api.Limits{Rate: 1, Burst: -1}}, {Limits: api.Limits{CredentialBurst: -1}}},
		"consumer":              {inbox("", api.Consumer{Verify: verify}), inbox(strings.Repeat("x", 250), api.Consumer{Verify: verify})},
		"Config.Inbox":          {inbox("none", api.Consumer{}), inbox("post", api.Consumer{Verify: verify, Tenant: "\x00"})},
		"kept for": {inbox("post", api.Consumer{Verify: verify, Keep: -1}),
			inbox("post", api.Consumer{Verify: verify, Keep: 4000 * 24 * time.Hour})},
	}
	for _, origin := range []string{"*", "null", "", "shop.example", "https://*.example", "https://shop.example/", "https://shop.example/a",
		"ftp://a", "https://Shop.example", "https://a@shop.example", "https://", "https://a?b"} {
		configs["Origins"] = append(configs["Origins"], api.Config{Origins: []string{origin}})
	}
	for want, patterns := range map[string][]string{
		"Pawl's own": {"/v1/mine", "GET /v1/workflows", "/v1", "/v1/{rest...}", "POST example.com/v1/", "/healthz", "GET /readyz", "/metrics"},
		"shop":       {"shop"}, "duplicate": {"GET /{x}/{x}"}, `""`: {""},
	} {
		for _, p := range patterns {
			configs[want] = append(configs[want], api.Config{Routes: map[string]http.Handler{p: says("mine")}})
		}
	}
	configs["conflicts"] = []api.Config{{Routes: map[string]http.Handler{"/a/{x}": says("1"), "/{x}/a": says("2")}}}
	configs["/a"] = []api.Config{{Routes: map[string]http.Handler{"/a": nil}}}
	for want, all := range configs {
		for i, c := range all {
			_, err := api.New(&engine.Engine{}, c)
			assert.ErrorContains(t, err, want, fmt.Sprint(want, i))
		}
	}
	_, err := api.New(nil, api.Config{})
	assert.ErrorContains(t, err, "engine")
}

func TestPublicURLIsChecked(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"": true, "https://host": true, "https://host/": true, "https://host:8443/a/b": true, "http://localhost:8080/pawl/": true,
		"https://host/A.b~c_d-e": true, "host/pawl": false, "ftp://host": false, "https://": false, "https://u@host/pawl": false,
		"https://host/pawl?x": false, "https://host/pawl#x": false, "https://host/a//b": false, "https://host/../b": false,
		"https://host/a%2Fb": false, "https://host/a b": false, "https://host/v1": false, "https://host/docs/x": false,
		"https://host/healthz": false, "https://Host/pawl": false,
	} {
		err := api.CheckPublicURL(text)
		assert.Equalf(t, good, err == nil, "%q: %v", text, err)
	}
}
