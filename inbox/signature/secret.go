package signature

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

const (
	prefix    = "whsec_"
	minSecret = 24 // bytes, required by Standard Webhooks
	maxSecret = 64
	scheme    = "v1,"
)

// Secret signs and verifies. Printing it, or a value that contains it, does not reveal the key,
// which is behind a function that package fmt cannot access. The zero Secret verifies nothing and
// must not sign.
type Secret struct{ key func() []byte }

func newSecret(key []byte) Secret { return Secret{func() []byte { return key }} }

// ParseSecret parses a secret: "whsec_" and the base64 of 24 to 64 bytes. Errors do not contain the
// text.
func ParseSecret(text string) (Secret, error) {
	encoded, is := strings.CutPrefix(text, prefix)
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !is || err != nil { // the error would contain a part of it
		return Secret{}, errors.New(`webhook secret: it is not "whsec_" and base64`)
	}
	if len(key) < minSecret || len(key) > maxSecret {
		return Secret{}, fmt.Errorf("webhook secret: has %d bytes instead of %d to %d", len(key), minSecret, maxSecret)
	}
	return newSecret(key), nil
}

// NewSecret returns a secret of 32 random bytes.
func NewSecret() Secret {
	key := make([]byte, 32)
	rand.Read(key) // never fails
	return newSecret(key)
}

func (s Secret) IsZero() bool { return s.key == nil }

// Reveal returns the text of a secret for [ParseSecret]. It must not be the zero Secret.
func (s Secret) Reveal() string { return prefix + base64.StdEncoding.EncodeToString(s.key()) }

// String hides the secret.
func (s Secret) String() string { return prefix + "…" }

// GoString hides the secret.
func (s Secret) GoString() string { return s.String() }

func (s Secret) sign(id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, s.key())
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return scheme + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
