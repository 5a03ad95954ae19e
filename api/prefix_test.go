package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api"
)

const prefix = "/pawl"

func published(c *api.Config) { c.PublicURL = "https://shop.example.com" + prefix + "/" }

// A proxy may remove the prefix, or keep it.
func TestPublicURLPrefixesAnswers(t *testing.T) {
	t.Parallel()
	s := newGuarded(t, published)
	with := append(s.with("read submit keys"), "Content-Type", "application/json")
	for i, at := range []string{"", prefix} {
		n := string(rune('a' + i))
		created := s.post(at+"/v1/workflows/delivery/book", n, `{}`, with[:2]...)
		created.want(t, 201)
		location := created.header.Get("Location")
		assert.True(t, strings.HasPrefix(location, prefix+"/v1/instances/"), location)
		s.get(location, with[:2]...).want(t, 200)
		s.get(strings.TrimPrefix(location, prefix), with[:2]...).want(t, 200)

		accepted := s.post(location+"/deliver", n+"-2", `{"door":3}`, with[:2]...)
		accepted.want(t, 202)
		location = accepted.header.Get("Location")
		assert.True(t, strings.HasPrefix(location, prefix+"/v1/commands/"), location)
		s.get(location, with[:2]...).want(t, 200)

		made := s.do("POST", at+"/v1/keys", []byte(`{"name":"`+n+`","grants":["read"]}`), with...)
		made.want(t, 201)
		location = made.header.Get("Location")
		assert.True(t, strings.HasPrefix(location, prefix+"/v1/keys/"), location)
		s.get(location, with[:2]...).want(t, 200)

		cookie := s.do("POST", at+"/v1/tickets", []byte(`{"grants":["read:parcel"],"cookie":true}`), with...)
		cookie.want(t, 201)
		assert.Contains(t, cookie.header.Get("Set-Cookie"), "; Path="+prefix+"/v1/;")
		text := string(s.get(at+"/openapi.json", with[:2]...).body)
		assert.Contains(t, text, `"servers":[{"url":"https://shop.example.com/pawl"}]`)
		assert.Contains(t, string(s.get(at+"/asyncapi.json", with[:2]...).body),
			`"servers":{"public":{"host":"shop.example.com","pathname":"/pawl","protocol":"wss"}}`)
		s.get(at+"/docs").want(t, 200)
		s.get(at+"/healthz").want(t, 200)
		assert.Contains(t, string(s.get(at+"/nowhere").body), prefix+"/docs")
	}
	for _, path := range []string{"/pawl", "/pawlx/v1/me", "/pawl/pawl/v1/me", "/p%61wl/v1/me", "/x/pawl/v1/me"} {
		a := s.get(path)
		assert.Equal(t, 404, a.status, path)
	}
}

// Pages at the public URL have the server's own origin, even if the proxy does not forward their host.
func TestPublicURLIsOwnOrigin(t *testing.T) {
	t.Parallel()
	s := newServer(t, published)
	for origin, status := range map[string]int{"https://shop.example.com": 201, "https://shop.example.org": 403,
		"http://shop.example.com": 403} {
		a := s.post("/v1/workflows/parcel/pack", origin, `{"to":"Graz","weight":1}`, "Origin", origin)
		assert.Equalf(t, status, a.status, "%s %s", origin, a.body)
	}
}

func TestPublicURLServesOwnRoutes(t *testing.T) {
	t.Parallel()
	s := newServer(t, published, func(c *api.Config) {
		c.Routes = map[string]http.Handler{"GET /shop/{item}": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(r.URL.Path))
		})}
	})
	for _, path := range []string{"/shop/1", "/pawl/shop/1"} {
		a := s.get(path)
		assert.Truef(t, a.status == 200 && string(a.body) == "/shop/1", "%s: %d %s", path, a.status, a.body)
	}
}
