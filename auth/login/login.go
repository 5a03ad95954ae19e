// Package login signs users in at an identity provider with a browser: the authorization code flow of OAuth 2.0 (RFC 6749, section 4.1)
// with PKCE (RFC 7636) and the endpoints from OpenID Connect Discovery 1.0. The resulting access token is verified like any other; this
// package trusts nothing except the endpoints.
package login

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/oauth2"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/internal/idp"
	"github.com/pawlhq/pawl/workflow"
)

// Config configures a Provider. Issuer and ClientID are required.
type Config struct {
	Issuer       string   // as in its tokens
	Discovery    string   // URL of its discovery document; defaults to the issuer and "/.well-known/openid-configuration"
	ClientID     string   // of this service at the provider
	ClientSecret string   // "" for a public client
	Scopes       []string // requested scopes; defaults to "openid"
	Client       *http.Client
}

const (
	timeout   = 10 * time.Second
	keepFor   = 10 * time.Minute // lifetime of the provider's endpoints
	pauseFor  = 5 * time.Second  // between two reads of the endpoints after a failure
	maxAtOnce = 16               // concurrent exchanges of codes, which anyone can request
	maxOfOne  = 4                // of these, from one address
)

// Provider is an identity provider. It is safe for concurrent use.
type Provider struct {
	config Config
	client http.Client

	mu       sync.Mutex
	running  map[string]int // exchanges, by address of the browser
	known    *endpoints
	read     time.Time // when known was read
	failure  error     // of the last read
	failedAt time.Time
}

// endpoints are the provider's endpoints in its discovery document.
type endpoints struct {
	Issuer    string `json:"issuer"`
	Authorize string `json:"authorization_endpoint"`
	Token     string `json:"token_endpoint"`
}

// New returns a provider without any request. Errors are configuration errors.
func New(c Config) (*Provider, error) {
	if c.Issuer == "" || c.ClientID == "" {
		return nil, errors.New("login: an issuer and a client id are required")
	}
	c.Discovery = cmp.Or(c.Discovery, strings.TrimRight(c.Issuer, "/")+"/.well-known/openid-configuration")
	if len(c.Scopes) == 0 {
		c.Scopes = []string{"openid"}
	}
	if err := idp.CheckAddress(c.Discovery); err != nil {
		return nil, fmt.Errorf("login: the discovery document: %w", err)
	}
	p := &Provider{config: c, running: map[string]int{}}
	if c.Client != nil {
		p.client = *c.Client
	}
	p.client.Timeout = cmp.Or(p.client.Timeout, timeout)
	// Codes and secrets are only sent to the discovered endpoint.
	p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return p, nil
}

// Pending is the state of a login, stored in the browser that began it.
type Pending struct {
	State    string `json:"s"`
	Verifier string `json:"v"`
	Redirect string `json:"r"` // the redirect URI
}

// Begin returns the address at the provider that redirects back to redirect. Error: Unavailable.
func (p *Provider) Begin(ctx context.Context, redirect string) (address string, pending Pending, err error) {
	flow, err := p.flow(ctx, redirect)
	if err != nil {
		return "", pending, err
	}
	pending = Pending{State: rand.Text(), Verifier: oauth2.GenerateVerifier(), Redirect: redirect}
	return flow.AuthCodeURL(pending.State, oauth2.S256ChallengeOption(pending.Verifier)), pending, nil
}

// flow returns the authorization code flow with this redirect URI. Error: Unavailable.
func (p *Provider) flow(ctx context.Context, redirect string) (*oauth2.Config, error) {
	at, err := p.endpoints(ctx)
	if err != nil {
		return nil, err
	}
	style := oauth2.AuthStyleInHeader
	if p.config.ClientSecret == "" {
		style = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{ClientID: p.config.ClientID, ClientSecret: p.config.ClientSecret, RedirectURL: redirect, Scopes: p.config.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: at.Authorize, TokenURL: at.Token, AuthStyle: style}}, nil
}

// Finish exchanges the query of the redirect for a token. from is the browser's address. Errors: Unauthorized if the provider or the
// browser's state rejects it; Unavailable; Overloaded.
func (p *Provider) Finish(ctx context.Context, from string, pending Pending, came url.Values) (token string, err error) {
	if pending.State == "" || subtle.ConstantTimeCompare([]byte(came.Get("state")), []byte(pending.State)) != 1 {
		return "", refuse("this login was not started in this browser, or too long ago: sign in again")
	}
	if iss := came.Get("iss"); iss != "" && iss != p.config.Issuer { // RFC 9207
		return "", refuse("the response is from another identity provider")
	}
	code := came.Get("code")
	if code == "" {
		return "", refuse("the identity provider has refused: " + word(came.Get("error")))
	}
	if !p.enter(from) {
		return "", workflow.Errorf(workflow.Overloaded, "too many sign in at once: try again")
	}
	defer p.leave(from)
	flow, err := p.flow(ctx, pending.Redirect)
	if err != nil {
		return "", err
	}
	found, err := flow.Exchange(context.WithValue(ctx, oauth2.HTTPClient, &p.client), code, oauth2.VerifierOption(pending.Verifier),
		oauth2.SetAuthURLParam("client_id", p.config.ClientID))
	if refused, is := errors.AsType[*oauth2.RetrieveError](err); is && refused.Response.StatusCode < 500 {
		return "", refuse("the identity provider has refused: " + word(refused.ErrorCode))
	}
	if err != nil {
		return "", unavailable(err)
	}
	return found.AccessToken, nil
}

// enter acquires a slot for an exchange, limited in total and per address.
func (p *Provider) enter(from string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := 0
	for _, n := range p.running {
		all += n
	}
	if all >= maxAtOnce || p.running[from] >= maxOfOne {
		return false
	}
	p.running[from]++
	return true
}

func (p *Provider) leave(from string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[from]--; p.running[from] == 0 {
		delete(p.running, from)
	}
}

func refuse(message string) error { return auth.Refuse(auth.Malformed, message) }

// word returns a printable form of an error code of the provider.
func word(code string) string {
	if code == "" || len(code) > 64 || strings.ContainsFunc(code, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		return "no reason given"
	}
	return code
}

// endpoints returns the provider's endpoints, cached for some minutes. Error: Unavailable.
func (p *Provider) endpoints(ctx context.Context) (*endpoints, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.known != nil && time.Since(p.read) < keepFor:
		return p.known, nil
	case p.failure != nil && time.Since(p.failedAt) < pauseFor: // do not repeat a read that others have waited for
		return nil, unavailable(p.failure)
	}
	found, err := p.discover(context.WithoutCancel(ctx))
	if err != nil {
		p.failure, p.failedAt = err, time.Now()
		return nil, unavailable(err)
	}
	p.known, p.read, p.failure = found, time.Now(), nil
	return found, nil
}

// discover reads the discovery document.
func (p *Provider) discover(ctx context.Context) (*endpoints, error) {
	text, err := idp.Get(ctx, &p.client, p.config.Discovery)
	if err != nil {
		return nil, err
	}
	found := &endpoints{}
	if err := json.Unmarshal(text, found); err != nil {
		return nil, err
	}
	if found.Issuer != p.config.Issuer {
		return nil, fmt.Errorf("%s is the document of another issuer: %q", p.config.Discovery, found.Issuer)
	}
	return found, errors.Join(idp.CheckAddress(found.Authorize), idp.CheckAddress(found.Token))
}

func unavailable(cause error) error {
	return &workflow.Error{Code: workflow.Unavailable, Message: "the identity provider does not respond; try again later", Cause: cause}
}
