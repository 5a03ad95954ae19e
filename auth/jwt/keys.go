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

// key is one with which tokens are verified.
type key struct {
	id        string // "" for none
	algorithm string // "" for any that it fits
	print     string // the same for the same key
	public    any    // or the secret

	ended chan struct{} // closed by end
	end   func()        // when it is no longer one of the provider's; again does no harm
}

func newKey(id, algorithm, print string, public any) *key {
	k := &key{id: id, algorithm: algorithm, print: print, public: public, ended: make(chan struct{})}
	k.end = sync.OnceFunc(func() { close(k.ended) })
	return k
}

// keySet is the keys at a time. It is not changed.
type keySet []*key

// find is the key for a token; nil for none. A token that names none may be of the only key that fits.
func (s keySet) find(id string, a jose.SignatureAlgorithm) (found *key) {
	for _, k := range s {
		switch {
		case !k.named(id) || !k.fits(a):
		case found != nil:
			return nil // which of them it is nobody says
		default:
			found = k
		}
	}
	return found
}

// named reports whether a token that names a key by its id, "" for none, may mean this one. There is one secret, whatever
// its tokens call it.
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
	maxKeySet = 1 << 20 // bytes
	maxKeys   = 100
	minRSA    = 2048 // bits
)

// parseKeys reads a JWK Set. Keys of other kinds than these, and those that are for something else, are
// passed over (RFC 7517, section 5). One that is there already is the same again.
func parseKeys(text []byte, before keySet) (keySet, error) {
	var in struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, errors.New("it is no JWK Set")
	}
	if len(in.Keys) > maxKeys {
		return nil, fmt.Errorf("it has more than %d keys", maxKeys)
	}
	var set keySet
	for _, one := range in.Keys {
		k, err := parseKey(one)
		if err != nil {
			return nil, err
		}
		if k == nil || set.same(k) != nil { // some list a key twice
			continue
		}
		if old := before.same(k); old != nil {
			k = old
		}
		set = append(set, k)
	}
	if set == nil {
		return nil, errors.New("it has no key that can be used")
	}
	return set, nil
}

// same is the key of the set that is the same; nil for none.
func (s keySet) same(k *key) *key {
	if i := slices.IndexFunc(s, func(one *key) bool { return one.print == k.print }); i >= 0 {
		return s[i]
	}
	return nil
}

// parseKey is nil for a key that is passed over.
func parseKey(text []byte) (*key, error) {
	var jwk jose.JSONWebKey
	if err := jwk.UnmarshalJSON(text); err != nil || !jwk.Valid() || jwk.Use != "" && jwk.Use != "sig" {
		return nil, nil
	}
	if !jwk.IsPublic() {
		return nil, errors.New("it has a private key in it: publish the public halves alone")
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
