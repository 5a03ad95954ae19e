package jwt

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/internal/jws"
	"github.com/pawlhq/pawl/internal/kernel/backoff"
)

// Verifier turns tokens into principals. It is safe for concurrent use.
type Verifier struct {
	config     Config
	algorithms []jose.SignatureAlgorithm
	keys       *keySource
	cache      cache
}

// New returns a verifier. Start fetches the keys. Errors are configuration errors.
func New(c Config) (*Verifier, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("jwt: %w", err)
	}
	v := &Verifier{config: c, keys: newKeySource(&c), cache: cache{limit: c.Cache}}
	for _, a := range c.Algorithms {
		v.algorithms = append(v.algorithms, jose.SignatureAlgorithm(a))
	}
	switch {
	case c.Secret != nil:
		v.keys.keys.Store(&keySet{newKey("", "", "", c.Secret)})
	case c.Keys != nil:
		err = v.keys.set(c.Keys)
	case c.File != "":
		var text []byte
		if text, err = os.ReadFile(c.File); err == nil {
			err = v.keys.set(text)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("jwt: the keys: %w", err)
	}
	return v, nil
}

// Start starts to refresh the keys and waits for the first ones until ctx ends. Failures are reported by Health and Verify. Stop the
// verifier when done.
func (v *Verifier) Start(ctx context.Context) {
	if v.keys.read != nil {
		first := v.keys.once()
		v.keys.running.Go(func() {
			<-first
			for backoff.Sleep(v.keys.ctx, v.keys.next(v.config.Refresh)) {
				<-v.keys.once()
			}
		})
		select {
		case <-first:
		case <-ctx.Done():
		}
	}
}

// Stop ends the refreshing of keys.
func (v *Verifier) Stop() {
	v.keys.stop()
	v.keys.running.Wait()
}

// maxToken is the maximum length of a token in bytes.
const maxToken = 16 << 10

// Verify returns the principal of a token. Errors: Unauthorized caused by an [auth.Refusal]; Unavailable without keys.
func (v *Verifier) Verify(ctx context.Context, token string) (auth.Principal, error) {
	if len(token) > maxToken || !jws.Canonical(token) {
		return auth.Principal{}, auth.Refuse(auth.Malformed, "the token is not a signed JSON Web Token")
	}
	sum := sha256.Sum256([]byte(token))
	if e, found := v.cache.get(sum); found {
		switch {
		case !v.keys.now().Before(e.principal.Until):
			v.cache.remove(sum)
		case v.keys.holds(e.key):
			return e.principal, nil
		}
	}
	payload, k, err := v.signed(ctx, token)
	if err != nil {
		return auth.Principal{}, err
	}
	p, err := v.config.principal(payload, v.keys.now())
	if err != nil {
		return auth.Principal{}, err
	}
	p.Ended = k.ended
	v.cache.put(sum, entry{p, k})
	return p, nil
}

// signed returns the payload of a token and its key.
func (v *Verifier) signed(ctx context.Context, token string) ([]byte, *key, error) {
	parsed, err := jose.ParseSignedCompact(token, v.algorithms)
	if _, other := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); other {
		return nil, nil, auth.Refuse(auth.BadAlgorithm, "the token is unsigned or uses an algorithm that is not accepted")
	}
	if err != nil || len(parsed.Signatures) != 1 {
		return nil, nil, auth.Refuse(auth.Malformed, "the token is not a signed JSON Web Token")
	}
	header := &parsed.Signatures[0].Protected
	if !isAccess(header) {
		return nil, nil, auth.Refuse(auth.Malformed, "the token is not an access token")
	}
	k, err := v.keys.find(ctx, header.KeyID, jose.SignatureAlgorithm(header.Algorithm))
	if err != nil {
		return nil, nil, err
	}
	if k == nil {
		return nil, nil, auth.Refuse(auth.UnknownKey, "the token has an unknown key")
	}
	payload, err := parsed.Verify(k.public)
	if err != nil {
		return nil, nil, auth.Refuse(auth.BadSignature, "the token has a wrong signature")
	}
	return payload, k, nil
}

// isAccess reports whether a header is that of an access token. It rejects logout tokens, proofs of possession and other statements signed
// with the same keys (RFC 8725, section 3.11), unencoded payloads (RFC 7797, section 7) and critical extensions, including an empty list
// (RFC 7515, section 4.1.11).
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

// Health reports the state of the keys. The warning is "" if all is well; the error explains why no token is accepted. Both are safe to
// show to anyone.
func (v *Verifier) Health() (warning string, err error) {
	if _, err := v.keys.current(); err != nil {
		return "", err
	}
	r := v.keys
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == nil || r.got.IsZero() {
		return "", nil
	}
	return fmt.Sprintf("the keys of the identity provider could not be fetched since %s; they are used until %s",
		r.got.UTC().Format(time.RFC3339), r.got.Add(r.survive).UTC().Format(time.RFC3339)), nil
}

// Stats are counters of a Verifier.
type Stats struct {
	Reads    int64     // reads of the keys
	Failures int64     // failed reads
	Read     time.Time // last successful read
	Keys     int
	Cached   int // cached tokens
}

// Stats returns the current counters.
func (v *Verifier) Stats() Stats {
	r := v.keys
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Stats{Reads: r.reads, Failures: r.failures, Read: r.got, Cached: v.cache.len()}
	if keys := r.keys.Load(); keys != nil {
		s.Keys = len(*keys)
	}
	return s
}

// cache caches verified tokens by their SHA-256.
type cache struct {
	limit   int
	mu      sync.RWMutex
	entries map[[sha256.Size]byte]entry
}

// entry is the principal of a token and its signing key.
type entry struct {
	principal auth.Principal
	key       *key
}

func (c *cache) get(sum [sha256.Size]byte) (entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, found := c.entries[sum]
	return e, found
}

func (c *cache) put(sum [sha256.Size]byte, e entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[[sha256.Size]byte]entry{}
	}
	for old := range c.entries { // evict any: it is verified again
		if len(c.entries) < c.limit {
			break
		}
		delete(c.entries, old)
	}
	c.entries[sum] = e
}

func (c *cache) remove(sum [sha256.Size]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, sum)
}

func (c *cache) len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.entries)
}
