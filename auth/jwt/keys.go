package jwt

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// key is a key that verifies tokens.
type key struct {
	id        string // "" for none
	algorithm string // "" for any that fits
	print     string // identifies equal keys
	public    any    // or the secret

	ended chan struct{} // closed by end
	end   func()        // called when the provider no longer has the key; idempotent
}

func newKey(id, algorithm, print string, public any) *key {
	k := &key{id: id, algorithm: algorithm, print: print, public: public, ended: make(chan struct{})}
	k.end = sync.OnceFunc(func() { close(k.ended) })
	return k
}

// keySet is an immutable set of keys.
type keySet []*key

// find returns the key of a token, or nil. A token without a key id uses the only key that fits.
func (s keySet) find(id string, a jose.SignatureAlgorithm) (found *key) {
	for _, k := range s {
		switch {
		case !k.named(id) || !k.fits(a):
		case found != nil:
			return nil // ambiguous
		default:
			found = k
		}
	}
	return found
}

// named reports whether a token with this key id, "" for none, may use this key. Secrets ignore the id.
func (k *key) named(id string) bool {
	_, secret := k.public.([]byte)
	return id == "" || k.id == id || secret
}

func (k *key) fits(a jose.SignatureAlgorithm) bool {
	if k.algorithm != "" && k.algorithm != string(a) {
		return false
	}
	switch public := k.public.(type) {
	case *rsa.PublicKey:
		return slices.Contains([]jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256}, a)
	case *ecdsa.PublicKey:
		return a == jose.ES256 && public.Curve == elliptic.P256() || a == jose.ES384 && public.Curve == elliptic.P384()
	case ed25519.PublicKey:
		return a == jose.EdDSA
	case []byte:
		return a == jose.HS256
	}
	return false
}

// Bounds of a JWK Set.
const (
	maxKeys = 100
	minRSA  = 2048 // bits
)

// parseKeys parses a JWK Set. It ignores unsupported keys and keys for other purposes (RFC 7517, section 5), and reuses existing keys.
func parseKeys(text []byte, before keySet) (keySet, error) {
	var in struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, errors.New("it is no JWK Set")
	}
	if len(in.Keys) > maxKeys {
		return nil, fmt.Errorf("has more than %d keys", maxKeys)
	}
	var set keySet
	for _, one := range in.Keys {
		k, err := parseKey(one)
		if err != nil {
			return nil, err
		}
		if k == nil || set.same(k) != nil { // some providers list a key twice
			continue
		}
		if old := before.same(k); old != nil {
			k = old
		}
		set = append(set, k)
	}
	if set == nil {
		return nil, errors.New("no usable key")
	}
	return set, nil
}

// same returns the equal key of the set, or nil.
func (s keySet) same(k *key) *key {
	if i := slices.IndexFunc(s, func(one *key) bool { return one.print == k.print }); i >= 0 {
		return s[i]
	}
	return nil
}

// parseKey parses a key. It returns nil for an ignored key.
func parseKey(text []byte) (*key, error) {
	var jwk jose.JSONWebKey
	if err := jwk.UnmarshalJSON(text); err != nil || !jwk.Valid() || jwk.Use != "" && jwk.Use != "sig" {
		return nil, nil
	}
	if !jwk.IsPublic() {
		return nil, errors.New("contains a private key: publish public keys only")
	}
	if public, is := jwk.Key.(*rsa.PublicKey); is && public.N.BitLen() < minRSA {
		return nil, nil
	}
	print, err := jwk.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, nil
	}
	return newKey(jwk.KeyID, jwk.Algorithm, fmt.Sprintf("%q %q %x", jwk.KeyID, jwk.Algorithm, print), jwk.Key), nil
}
