package jwt

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/internal/jws"
)

// Verifier turns tokens into principals. It is safe for concurrent use.
type Verifier struct {
	config     Config
	algorithms []jose.SignatureAlgorithm
	ring       *ring
	cache      cache
}

// New makes a verifier. It fetches nothing: see Start. Its error is a mistake in the Config.
func New(c Config) (*Verifier, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("jwt: %w", err)
	}
	v := &Verifier{config: c, ring: newRing(&c), cache: cache{limit: c.Cache}}
	for _, a := range c.Algorithms {
		v.algorithms = append(v.algorithms, jose.SignatureAlgorithm(a))
	}
	switch {
	case c.Secret != nil:
		v.ring.keys.Store(&keySet{newKey("", "", "", c.Secret)})
	case c.Keys != nil:
		err = v.ring.set(c.Keys)
	case c.File != "":
		var text []byte
		if text, err = os.ReadFile(c.File); err == nil {
			err = v.ring.set(text)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("jwt: the keys: %w", err)
	}
	return v, nil
}

// Start begins to keep the keys fresh, and waits for the first ones until ctx ends. That they cannot be
// fetched is no error: it is told by Health and to whoever calls. Stop when done.
func (v *Verifier) Start(ctx context.Context) {
	if v.ring.read != nil {
		v.ring.keep(ctx, v.config.Refresh)
	}
}

// Stop returns when nothing is fetched any more.
func (v *Verifier) Stop() {
	v.ring.stop()
	v.ring.running.Wait()
}

// maxToken is the longest token in bytes.
const maxToken = 16 << 10

// Verify says who has a token. Errors: Unauthorized with an [auth.Refusal] as its cause; Unavailable where
// there are no keys.
func (v *Verifier) Verify(ctx context.Context, token string) (auth.Principal, error) {
	if len(token) > maxToken || !jws.Canonical(token) {
		return auth.Principal{}, auth.Refuse(auth.Malformed, "the token is no signed JSON Web Token")
	}
	sum := sha256.Sum256([]byte(token))
	if e, found := v.cache.get(sum); found {
		switch {
		case !v.ring.now().Before(e.principal.Until):
			v.cache.remove(sum)
		case v.ring.holds(e.key):
			return e.principal, nil
		}
	}
	payload, k, err := v.signed(ctx, token)
	if err != nil {
		return auth.Principal{}, err
	}
	p, err := v.config.principal(payload, v.ring.now())
	if err != nil {
		return auth.Principal{}, err
	}
	p.Ended = k.ended
	v.cache.put(sum, entry{p, k})
	return p, nil
}

// signed returns what was signed, and by which key.
func (v *Verifier) signed(ctx context.Context, token string) ([]byte, *key, error) {
	parsed, err := jose.ParseSignedCompact(token, v.algorithms)
	if _, other := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); other {
		return nil, nil, auth.Refuse(auth.BadAlgorithm, "the token is signed with an algorithm that is not taken, or not at all")
	}
	if err != nil || len(parsed.Signatures) != 1 {
		return nil, nil, auth.Refuse(auth.Malformed, "the token is no signed JSON Web Token")
	}
	header := &parsed.Signatures[0].Protected
	if !isAccess(header) {
		return nil, nil, auth.Refuse(auth.Malformed, "it is a signed token of another kind")
	}
	k, err := v.ring.find(ctx, header.KeyID, jose.SignatureAlgorithm(header.Algorithm))
	if err != nil {
		return nil, nil, err
	}
	if k == nil {
		return nil, nil, auth.Refuse(auth.UnknownKey, "the token names no key that is known")
	}
	payload, err := parsed.Verify(k.public)
	if err != nil {
		return nil, nil, auth.Refuse(auth.BadSignature, "the signature of the token is not right")
	}
	return payload, k, nil
}

// isAccess reports whether a header is one of a token that says who calls: not that of a logout token, a proof of possession
// or another statement that the provider signs with the same keys (RFC 8725, section 3.11), nor of one whose payload is
// signed as it is (RFC 7797, section 7) or that needs an extension to be understood, not even if its list of those is empty (RFC 7515,
// section 4.1.11).
func isAccess(h *jose.Header) bool {
	for _, extension := range []jose.HeaderKey{"b64", "crit"} {
		if _, is := h.ExtraHeaders[extension]; is {
			return false
		}
	}
	kind, _ := h.ExtraHeaders[jose.HeaderType].(string)
	kind = strings.TrimPrefix(strings.ToLower(kind), "application/")
	return !strings.Contains(kind, "+") || kind == "at+jwt"
}

// Health is how the keys are. The warning is "" where all is well, and an error is why no token can be
// taken. Both are safe to tell anybody.
func (v *Verifier) Health() (warning string, err error) {
	if _, err := v.ring.current(); err != nil {
		return "", err
	}
	r := v.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == nil || r.got.IsZero() {
		return "", nil
	}
	return fmt.Sprintf("the keys of the identity provider could not be fetched since %s; they are used until %s",
		r.got.UTC().Format(time.RFC3339), r.got.Add(r.survive).UTC().Format(time.RFC3339)), nil
}

// Stats count what was done.
type Stats struct {
	Reads    int64     // of the keys
	Failures int64     // of those
	Read     time.Time // when they were read last
	Keys     int
	Cached   int // tokens that are remembered
}

// Stats returns them as they are now.
func (v *Verifier) Stats() Stats {
	r := v.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Stats{Reads: r.reads, Failures: r.failures, Read: r.got, Cached: v.cache.len()}
	if keys := r.keys.Load(); keys != nil {
		s.Keys = len(*keys)
	}
	return s
}
