package console_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/auth/jwt"
	"github.com/pawlhq/pawl/auth/login"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/chromium"
)

// withProvider is a node that takes the tokens of a provider, where people can sign in.
func withProvider(t *testing.T, claims map[string]any, change ...func(*service.Config)) (*stand, *authtest.Login) {
	t.Helper()
	idp := authtest.NewProvider(t)
	l := authtest.NewLogin(t, idp, claims)
	return newStand(t, append(change, func(c *service.Config) {
		c.Auth.JWT = &jwt.Config{Issuer: authtest.Issuer, Audience: []string{authtest.Audience}, Algorithms: []string{"ES256"}, JWKS: idp.URL}
		c.Auth.Login = &login.Config{Issuer: authtest.Issuer, ClientID: "console", Discovery: l.URL}
	})...), l
}

func TestSignInAtIdentityProvider(t *testing.T) {
	t.Parallel()
	s, l := withProvider(t, map[string]any{"sub": "änn", "tenant": "default", "scope": "read submit stream"})
	id := s.filed("A-1", 10).String()
	v := newVisitor(t, s.URL())
	link := "/console/sign-in/provider?next=" + url.QueryEscape("/console/instances/"+id)
	v.get("/console/sign-in?next="+url.QueryEscape("/console/instances/"+id)).want(200, `href="`+strings.ReplaceAll(link, "&", "&amp;")+`"`)
	p := v.get(link).want(http.StatusSeeOther)
	cookie := p.header.Get("Set-Cookie")
	assert.Regexp(t, "Path=/console/signed-in; Max-Age=600; HttpOnly;( Secure;)? SameSite=Lax", cookie)
	there := newVisitor(t, l.URL).get(strings.TrimPrefix(p.location(), l.URL)).want(http.StatusFound)
	require.True(t, strings.HasPrefix(there.location(), s.URL()+"/console/signed-in?"), there.location())
	came := strings.TrimPrefix(there.location(), s.URL())
	newVisitor(t, s.URL()).get(came).want(http.StatusUnauthorized, "not started in this browser", `role="alert"`)
	assert.Equal(t, "/console/instances/"+id, v.get(came).want(http.StatusSeeOther).location())
	v.get("/console/instances/"+id).want(200, "<bdi>änn</bdi> of <bdi>default</bdi>")
	v.get("/console/stuck").want(403)
	v.get(link, "Sec-Fetch-Site", "cross-site").want(403)
	v.get("/console/sign-in/provider?next=//evil.example").want(http.StatusSeeOther)
	l.Answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	there = newVisitor(t, l.URL).get(strings.TrimPrefix(v.get(link).location(), l.URL)).want(http.StatusFound)
	v.get(strings.TrimPrefix(there.location(), s.URL())).want(503, "does not respond")

	none := newStand(t)
	newVisitor(t, none.URL()).get("/console/sign-in/provider").want(404)
	newVisitor(t, none.URL()).get("/console/signed-in?code=a&state=b").want(404)
}

// The address to come back to is that of the service, whatever host a request names.
func TestRedirectURIDoesNotFollowHost(t *testing.T) {
	t.Parallel()
	claims := map[string]any{"sub": "ann", "tenant": "default", "scope": "read"}
	leave := func(s *stand, host string) (int, string, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/console/sign-in/provider", nil)
		require.NoError(t, err)
		r.Host = host
		answer, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		to, _ := url.Parse(answer.Header.Get("Location"))
		return answer.StatusCode, to.Query().Get("redirect_uri"), string(text)
	}
	unnamed, _ := withProvider(t, claims)
	for _, host := range []string{"evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8080"} {
		status, to, text := leave(unnamed, host)
		assert.Equal(t, http.StatusForbidden, status, host)
		assert.Empty(t, to, host)
		assert.Contains(t, text, "--public-url", host)
	}
	status, to, _ := leave(unnamed, "localhost:8080")
	assert.Truef(t, status == http.StatusSeeOther && to == "http://localhost:8080/console/signed-in", "%d to %q", status, to)
	named, _ := withProvider(t, claims, published)
	_, to, _ = leave(named, "evil.example")
	assert.Equal(t, "https://pawl.example.com/a/pawl/console/signed-in", to)
}

func TestBrowserSignsInAtProvider(t *testing.T) {
	t.Parallel()
	s, _ := withProvider(t, map[string]any{"sub": "ann", "tenant": "default", "scope": "read stream"})
	id := s.filed("A-1", 10).String()
	p := chromium.Start(t).Open(s.URL() + "/console/instances/" + id)
	for _, width := range []int{360, 1280} {
		p.Resize(width, 800, "light")
		assert.Empty(t, chromium.Eval[[]string](p, tooWide), width)
	}
	p.Click("a.button", 1)
	await.Eventually(t, "somebody is signed in", func() bool {
		return chromium.Eval[string](p, `document.readyState === 'complete' ? location.pathname : ''`) == "/console/instances/"+id
	})
	p.WaitText("#live", "live")
	p.WaitText("header .who bdi", "ann")
	assert.Empty(t, p.Seen().Problems)
}

// A forged login cookie causes no request to the provider.
func TestSignedInNeedsASealedCookie(t *testing.T) {
	t.Parallel()
	s, l := withProvider(t, map[string]any{"sub": "ann", "tenant": "default", "scope": "read"})
	var asked atomic.Int64
	l.Answer(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusBadGateway)
	})
	own := base64.RawURLEncoding.EncodeToString([]byte(`{"s":"a","v":"b","r":"` + s.URL() + `/console/signed-in","n":"/console/"}`))
	v := newVisitor(t, s.URL())
	sealed, _, _ := strings.Cut(strings.TrimPrefix(v.get("/console/sign-in/provider").want(http.StatusSeeOther).header.Get("Set-Cookie"),
		"pawl_console_login="), ";")
	withKey := newVisitor(t, s.URL()).post("/console/sign-in", url.Values{"credential": {s.key("olga", "read")}}).want(http.StatusSeeOther)
	session, _, _ := strings.Cut(strings.TrimPrefix(withKey.header.Get("Set-Cookie"), "pawl_console="), ";")
	for name, cookie := range map[string]string{"none": "", "self-made": own, "altered": sealed[:len(sealed)-4] + "AAAA", "of a session": session} {
		newVisitor(t, s.URL()).get("/console/signed-in?code=x&state=a", "Cookie", "pawl_console_login="+cookie).
			want(http.StatusUnauthorized, `role="alert"`)
		assert.Equalf(t, int64(0), asked.Load(), "with a cookie that is %s the provider was asked", name)
	}
	// And what was sealed for the way back signs nobody in.
	newVisitor(t, s.URL()).get("/console/instances", "Cookie", "pawl_console="+sealed).want(http.StatusSeeOther)
}
