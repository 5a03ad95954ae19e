package authtest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
)

// Login is an identity provider with a login flow that accepts every user.
type Login struct {
	URL    string // of its discovery document, and prefix of its endpoints
	Secret string // client secret; "" for none

	t        testing.TB
	provider *Provider
	claims   map[string]any // of the tokens

	mu       sync.Mutex
	document map[string]any
	codes    map[string]url.Values // parameters of the requests, by code
	answer   http.HandlerFunc      // response instead of tokens
}

// NewLogin starts a provider whose tokens have these claims in addition to [Claims].
func NewLogin(t testing.TB, p *Provider, claims map[string]any) *Login {
	t.Helper()
	l := &Login{t: t, provider: p, claims: claims, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", l.serveDocument)
	mux.HandleFunc("GET /authorize", l.authorize)
	mux.HandleFunc("POST /token", l.token)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	l.URL = server.URL
	l.document = map[string]any{"issuer": Issuer, "authorization_endpoint": l.URL + "/authorize?tenant=x", "token_endpoint": l.URL + "/token"}
	return l
}

// Say changes a member of the discovery document.
func (l *Login) Say(name string, value any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.document[name] = value
}

// Answer sets the response of the token endpoint.
func (l *Login) Answer(with http.HandlerFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer = with
}

func (l *Login) serveDocument(w http.ResponseWriter, _ *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(w, l.document)
}

func (l *Login) write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		l.t.Error(err)
	}
}

// authorize redirects back with a code.
func (l *Login) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	for name, want := range map[string]string{"response_type": "code", "code_challenge_method": "S256", "tenant": "x"} {
		if q.Get(name) != want {
			l.t.Errorf("the provider is asked with %s=%q", name, q.Get(name))
		}
	}
	code := rand.Text()
	l.mu.Lock()
	l.codes[code] = q
	l.mu.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {Issuer}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// token exchanges a code for a token, once.
func (l *Login) token(w http.ResponseWriter, r *http.Request) {
	code := r.PostFormValue("code")
	l.mu.Lock()
	asked, answer := l.codes[code], l.answer
	delete(l.codes, code)
	l.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	id, secret, _ := r.BasicAuth()
	good := asked != nil && r.PostFormValue("grant_type") == "authorization_code" &&
		r.PostFormValue("redirect_uri") == asked.Get("redirect_uri") && r.PostFormValue("client_id") == asked.Get("client_id") &&
		secret == url.QueryEscape(l.Secret) && (l.Secret == "" || id == url.QueryEscape(asked.Get("client_id"))) &&
		asked.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(challenge[:])
	if !good {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		l.write(w, map[string]string{"error": "invalid_grant"})
		return
	}
	l.write(w, map[string]any{"access_token": l.provider.Token(l.claims), "token_type": "Bearer", "expires_in": 3600})
}
