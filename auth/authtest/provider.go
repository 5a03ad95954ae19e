// Package authtest is an identity provider for tests, with real keys and signatures, that serves its JWK Set over HTTP.
package authtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Issuer and audience of [Provider.Token].
const (
	Issuer   = "https://idp.example"
	Audience = "pawl"
)

// Key is a signing key.
type Key struct {
	ID        string
	Algorithm jose.SignatureAlgorithm
	Private   any
}

// NewKey returns a new key for an algorithm.
func NewKey(t testing.TB, id string, a jose.SignatureAlgorithm) *Key {
	t.Helper()
	var private any
	var err error
	switch a {
	case jose.ES256:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.ES384:
		private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case jose.EdDSA:
		_, private, err = ed25519.GenerateKey(rand.Reader)
	default:
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &Key{id, a, private}
}

// Public returns the public key as a JWK.
func (k *Key) Public() jose.JSONWebKey {
	public := k.Private.(interface{ Public() crypto.PublicKey }).Public()
	return jose.JSONWebKey{Key: public, KeyID: k.ID, Algorithm: string(k.Algorithm), Use: "sig"}
}

// Sign returns a token signed with the key.
func (k *Key) Sign(t testing.TB, claims map[string]any) string {
	t.Helper()
	return Sign(t, k.Algorithm, jose.JSONWebKey{Key: k.Private, KeyID: k.ID}, claims)
}

// Sign returns a token signed with any key.
func Sign(t testing.TB, a jose.SignatureAlgorithm, key any, claims map[string]any) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithType("JWT")
	if named, is := key.(jose.JSONWebKey); is {
		options = options.WithHeader("kid", named.KeyID) // secrets need an explicit key id
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: a, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// Provider serves keys over HTTP.
type Provider struct {
	URL string // of its JWK Set
	Key *Key   // the first key

	t       testing.TB
	mu      sync.Mutex
	keys    []*Key
	down    bool
	fetches int
	held    chan struct{} // closed to end Hang; nil: not hanging
	hangs   chan struct{} // signals a hanging request
}

// NewProvider starts a provider with an ES256 key. It ends with the test.
func NewProvider(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{t: t, Key: NewKey(t, "first", jose.ES256)}
	p.Publish(p.Key)
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// Publish replaces the published keys.
func (p *Provider) Publish(keys ...*Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = keys
}

// Down makes the provider fail, or work again.
func (p *Provider) Down(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

// Hang delays all responses until release is called. release may be called several times.
func (p *Provider) Hang() (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held := make(chan struct{})
	p.held, p.hangs = held, make(chan struct{}, 100)
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.held = nil
		close(held)
	})
}

// Hangs waits for a delayed request after Hang.
func (p *Provider) Hangs() {
	p.mu.Lock()
	hangs := p.hangs
	p.mu.Unlock()
	<-hangs
}

// Fetches returns the number of requests for the keys.
func (p *Provider) Fetches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetches
}

// Set returns the JWK Set.
func (p *Provider) Set() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	var set jose.JSONWebKeySet
	for _, k := range p.keys {
		set.Keys = append(set.Keys, k.Public())
	}
	text, err := json.Marshal(set)
	if err != nil {
		p.t.Error(err)
	}
	return text
}

// ServeHTTP serves the JWK Set.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.fetches++
	down, held := p.down, p.held
	p.mu.Unlock()
	if held != nil {
		p.hangs <- struct{}{}
		select {
		case <-held:
		case <-r.Context().Done():
		}
	}
	if down {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write(p.Set())
}

// Claims returns the claims of a token that is valid for an hour, with changes; nil removes a claim.
func Claims(changes map[string]any) map[string]any {
	now := time.Now()
	all := map[string]any{"iss": Issuer, "aud": Audience, "sub": "ann", "tenant": "acme", "exp": now.Add(time.Hour).Unix(),
		"nbf": now.Add(-time.Minute).Unix()}
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

// Token signs claims with the first key; see [Claims].
func (p *Provider) Token(changes map[string]any) string {
	p.t.Helper()
	return p.Key.Sign(p.t, Claims(changes))
}
