package login_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/auth/login"
	"github.com/pawlhq/pawl/workflow"
)

const back = "https://pawl.example/console/signed-in"

func provider(t *testing.T, l *authtest.Login) *login.Provider {
	t.Helper()
	p, err := login.New(login.Config{Issuer: authtest.Issuer, Discovery: l.URL, ClientID: "con sole", ClientSecret: l.Secret,
		Scopes: []string{"openid", "pawl"}})
	require.NoError(t, err)
	return p
}

// goAndReturn follows the redirections to the provider and back.
func goAndReturn(t *testing.T, p *login.Provider) (login.Pending, url.Values) {
	t.Helper()
	address, pending, err := p.Begin(t.Context(), back)
	require.NoError(t, err)
	to, err := url.Parse(address)
	require.Truef(t, err == nil && to.Query().Get("scope") == "openid pawl" && to.Query().Get("client_id") == "con sole" &&
		to.Query().Get("redirect_uri") == back,
		"%v %v", address, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	response, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	_ = response.Body.Close()
	came, err := response.Location()
	require.Truef(t, err == nil && strings.HasPrefix(came.String(), back+"?"), "%v %v", came, err)
	return pending, came.Query()
}

func TestCodeIsExchangedOnce(t *testing.T) {
	for _, secret := range []string{"", "s3cret & more"} {
		l := authtest.NewLogin(t, authtest.NewProvider(t), nil)
		l.Secret = secret
		p := provider(t, l)
		pending, came := goAndReturn(t, p)
		token, err := p.Finish(t.Context(), "192.0.2.1", pending, came)
		require.Truef(t, err == nil && strings.Count(token, ".") == 2, "%q, %v", token, err)
		_, err = p.Finish(t.Context(), "192.0.2.1", pending, came)
		assert.Truef(t, workflow.CodeOf(err) == workflow.Unauthorized && strings.Contains(err.Error(), "invalid_grant"),
			"a code is good twice: %v", err)
	}
}

func TestFinishRequiresPendingLogin(t *testing.T) {
	l := authtest.NewLogin(t, authtest.NewProvider(t), nil)
	p := provider(t, l)
	pending, came := goAndReturn(t, p)
	other, theirs := goAndReturn(t, p)
	with := func(name, value string) url.Values {
		q := url.Values{}
		for n, values := range came {
			q[n] = values
		}
		q.Set(name, value)
		return q
	}
	for name, c := range map[string]struct {
		pending login.Pending
		came    url.Values
		has     string
	}{
		"nothing is kept":       {login.Pending{}, came, "not started in this browser"},
		"nothing is kept, none": {login.Pending{}, url.Values{"code": came["code"]}, "not started in this browser"},
		"another browser":       {other, came, "not started in this browser"},
		"somebody else's code":  {pending, with("code", theirs.Get("code")), "invalid_grant"},
		"another provider":      {pending, with("iss", "https://evil.example"), "from another identity provider"},
		"refused":               {pending, url.Values{"state": came["state"], "error": {"access_denied"}}, "access_denied"},
		"a text of elsewhere":   {pending, url.Values{"state": came["state"], "error": {"<b>call 555</b>"}}, "no reason given"},
	} {
		token, err := p.Finish(t.Context(), "192.0.2.1", c.pending, c.came)
		assert.Truef(t, workflow.CodeOf(err) == workflow.Unauthorized && strings.Contains(err.Error(), c.has) && token == "",
			"%s: %q, %v", name, token, err)
	}
}

func TestOtherIssuerIsRejected(t *testing.T) {
	for name, value := range map[string]string{"issuer": "https://evil.example", "token_endpoint": "http://evil.example/token",
		"authorization_endpoint": "javascript:x"} {
		l := authtest.NewLogin(t, authtest.NewProvider(t), nil)
		l.Say(name, value)
		address, _, err := provider(t, l).Begin(t.Context(), back)
		assert.Truef(t, workflow.CodeOf(err) == workflow.Unavailable && !strings.Contains(err.(*workflow.Error).Message, "evil"),
			"%s=%s: %s, %v", name, value, address, err)
	}
	for _, c := range []login.Config{{}, {Issuer: "https://a"}, {ClientID: "a"}, {Issuer: "http://idp.example", ClientID: "a"},
		{Issuer: "ftp://a", ClientID: "a"},
		{Issuer: "https://a", ClientID: "a", Discovery: "https://me:pass@a/"}} {
		_, err := login.New(c)
		assert.Errorf(t, err, "%+v is taken", c)
	}
	// The token endpoint redirects, fails or responds with garbage.
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		code   workflow.Code
	}{
		"leads elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://evil.example/", http.StatusTemporaryRedirect)
		}, workflow.Unauthorized},
		"fails":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, workflow.Unavailable},
		"nonsense": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, workflow.Unavailable},
		"no token": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }, workflow.Unavailable},
		"too much": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2<<20)) }, workflow.Unavailable},
	} {
		l := authtest.NewLogin(t, authtest.NewProvider(t), nil)
		p := provider(t, l)
		pending, came := goAndReturn(t, p)
		l.Answer(c.answer)
		token, err := p.Finish(t.Context(), "192.0.2.1", pending, came)
		assert.Truef(t, workflow.CodeOf(err) == c.code && token == "", "%s: %q, %v", name, token, err)
	}
}

// Exchanges from one address leave slots for others.
func TestExchangesPerAddress(t *testing.T) {
	l := authtest.NewLogin(t, authtest.NewProvider(t), nil)
	p := provider(t, l)
	pending, came := goAndReturn(t, p)
	asked, release := make(chan struct{}), make(chan struct{})
	l.Answer(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-release
		w.WriteHeader(http.StatusBadGateway)
	})
	ended := make(chan error)
	finish := func(from string) { _, err := p.Finish(t.Context(), from, pending, came); ended <- err }
	begun := 0
	begin := func(from string) {
		go finish(from)
		<-asked
		begun++
	}
	for range 4 {
		begin("192.0.2.1")
	}
	_, err := p.Finish(t.Context(), "192.0.2.1", pending, came)
	assert.Equalf(t, workflow.Overloaded, workflow.CodeOf(err), "a fifth of one address: %v", err)
	for i := range 12 {
		begin(fmt.Sprint("192.0.2.", 10+i))
	}
	_, err = p.Finish(t.Context(), "192.0.2.9", pending, came)
	assert.Equalf(t, workflow.Overloaded, workflow.CodeOf(err), "a seventeenth of all: %v", err)
	close(release)
	for range begun {
		err := <-ended
		assert.Equal(t, workflow.Unavailable, workflow.CodeOf(err), err)
	}
}
