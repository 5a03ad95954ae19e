package login

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/auth"
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
	timeout     = 10 * time.Second
	maxDocument = 1 << 20
	keepFor     = 10 * time.Minute // lifetime of the provider's endpoints
	pauseFor    = 5 * time.Second  // between two reads of the endpoints after a failure
	maxAtOnce   = 16               // concurrent exchanges of codes, which anyone can request
	maxOfOne    = 4                // of these, from one address
)

// Provider is an identity provider. It is safe for concurrent use.
type Provider struct {
	config Config
	client http.Client

	mu     sync.Mutex
	going  map[string]int // exchanges in progress, by address
	known  *addresses
	read   time.Time
	failed error // error of the last read, at that time
	at     time.Time
}

// addresses are the endpoints in the provider's document.
type addresses struct {
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
	if err := checkAddress(c.Discovery); err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	p := &Provider{config: c, going: map[string]int{}}
	if c.Client != nil {
		p.client = *c.Client
	}
	p.client.Timeout = cmp.Or(p.client.Timeout, timeout)
	// Codes and secrets are only sent to the discovered endpoint.
	p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return p, nil
}

// checkAddress rejects addresses that allow eavesdropping.
func checkAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && !(u.Scheme == "http" && onThisMachine(u.Hostname())) {
		return fmt.Errorf("the address %q of the identity provider is not https", address)
	}
	return nil
}

func onThisMachine(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Pending is the state of a login, stored in the browser that began it.
type Pending struct {
	State    string `json:"s"`
	Verifier string `json:"v"`
	Redirect string `json:"r"` // the redirect URI
}

// Begin returns the address at the provider that redirects back to redirect. Error: Unavailable.
func (p *Provider) Begin(ctx context.Context, redirect string) (address string, pending Pending, err error) {
	at, err := p.addresses(ctx)
	if err != nil {
		return "", pending, err
	}
	to, err := url.Parse(at.Authorize)
	if err != nil {
		return "", pending, unavailable(err)
	}
	pending = Pending{State: rand.Text(), Verifier: rand.Text() + rand.Text(), Redirect: redirect}
	challenge := sha256.Sum256([]byte(pending.Verifier))
	q := to.Query()
	for name, value := range map[string]string{"response_type": "code", "client_id": p.config.ClientID, "redirect_uri": redirect,
		"scope": strings.Join(p.config.Scopes, " "), "state": pending.State, "code_challenge_method": "S256",
		"code_challenge": base64.RawURLEncoding.EncodeToString(challenge[:])} {
		q.Set(name, value)
	}
	to.RawQuery = q.Encode()
	return to.String(), pending, nil
}

// Finish exchanges the query of the redirect for a token. from is the browser's address. Errors:
// Unauthorized if the provider or the browser's state rejects it; Unavailable; Overloaded.
func (p *Provider) Finish(ctx context.Context, from string, pending Pending, came url.Values) (token string, err error) {
	if pending.State == "" || subtle.ConstantTimeCompare([]byte(came.Get("state")), []byte(pending.State)) != 1 {
		return "", refuse("this login was not started in this browser, or too long ago: sign in again")
	}
	if iss := came.Get("iss"); iss != "" && iss != p.config.Issuer { // RFC 9207
		return "", refuse("another identity provider has answered")
	}
	code := came.Get("code")
	if code == "" {
		return "", refuse("the identity provider has refused: " + word(came.Get("error")))
	}
	if !p.enter(from) {
		return "", workflow.Errorf(workflow.Overloaded, "too many sign in at once: try again")
	}
	defer p.leave(from)
	at, err := p.addresses(ctx)
	if err != nil {
		return "", err
	}
	return p.exchange(ctx, at.Token, url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {pending.Redirect},
		"client_id": {p.config.ClientID}, "code_verifier": {pending.Verifier}})
}

// enter acquires a slot for an exchange, limited in total and per address.
func (p *Provider) enter(from string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := 0
	for _, n := range p.going {
		all += n
	}
	if all >= maxAtOnce || p.going[from] >= maxOfOne {
		return false
	}
	p.going[from]++
	return true
}

func (p *Provider) leave(from string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.going[from]--; p.going[from] == 0 {
		delete(p.going, from)
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

// exchange exchanges a code for a token.
func (p *Provider) exchange(ctx context.Context, address string, form url.Values) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return "", unavailable(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if p.config.ClientSecret != "" {
		r.SetBasicAuth(url.QueryEscape(p.config.ClientID), url.QueryEscape(p.config.ClientSecret))
	}
	var said struct {
		Token string `json:"access_token"`
		Error string `json:"error"`
	}
	status, err := p.ask(r, &said)
	switch {
	case err != nil:
		return "", unavailable(err)
	case status >= 500:
		return "", unavailable(fmt.Errorf("the token endpoint answers %d", status))
	case status != http.StatusOK || said.Token == "":
		return "", refuse("the identity provider has refused: " + word(said.Error))
	}
	return said.Token, nil
}

// ask sends a request and parses a JSON response. Invalid JSON is only an error with a successful
// status.
func (p *Provider) ask(r *http.Request, into any) (status int, err error) {
	r.Header.Set("Accept", "application/json")
	response, err := p.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	if err == nil && len(text) > maxDocument {
		err = fmt.Errorf("responded with more than %d bytes", maxDocument)
	}
	if err != nil {
		return response.StatusCode, err
	}
	if err := json.Unmarshal(text, into); err != nil && response.StatusCode == http.StatusOK {
		return response.StatusCode, err
	}
	return response.StatusCode, nil
}

// addresses returns the provider's endpoints, cached for some minutes. Error: Unavailable.
func (p *Provider) addresses(ctx context.Context) (*addresses, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.known != nil && time.Since(p.read) < keepFor:
		return p.known, nil
	case p.failed != nil && time.Since(p.at) < pauseFor: // do not repeat a read that others have waited for
		return nil, unavailable(p.failed)
	}
	found, err := p.discover(context.WithoutCancel(ctx))
	if p.failed, p.at = err, time.Now(); err != nil {
		return nil, unavailable(err)
	}
	p.known, p.read = found, p.at
	return found, nil
}

// discover reads the discovery document.
func (p *Provider) discover(ctx context.Context) (*addresses, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.config.Discovery, nil)
	if err != nil {
		return nil, err
	}
	found := &addresses{}
	switch status, err := p.ask(r, found); {
	case err != nil:
		return nil, err
	case status != http.StatusOK:
		return nil, fmt.Errorf("%s answers %d", p.config.Discovery, status)
	case found.Issuer != p.config.Issuer:
		return nil, fmt.Errorf("%s is the document of another issuer: %q", p.config.Discovery, found.Issuer)
	}
	return found, errors.Join(checkAddress(found.Authorize), checkAddress(found.Token))
}

func unavailable(cause error) error {
	return &workflow.Error{Code: workflow.Unavailable, Message: "the identity provider cannot be asked now", Cause: cause}
}
