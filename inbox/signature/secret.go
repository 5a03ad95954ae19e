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
	minSecret = 24 // bytes, as Standard Webhooks asks
	maxSecret = 64
	scheme    = "v1,"
)

// Secret signs and verifies. Printing one does not show it, nor does printing
// what contains it: the key is behind a function, where package fmt cannot get
// at it. The zero Secret verifies nothing, and must not sign.
type Secret struct{ key func() []byte }

func newSecret(key []byte) Secret { return Secret{func() []byte { return key }} }

// ParseSecret reads a secret as it is handed over: "whsec_" and the base64 of 24
// to 64 bytes. The error says what is wrong with the text and shows nothing of
// it.
func ParseSecret(text string) (Secret, error) {
	encoded, is := strings.CutPrefix(text, prefix)
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !is || err != nil { // the error would show a part of it
		return Secret{}, errors.New(`webhook secret: it is not "whsec_" and base64`)
	}
	if len(key) < minSecret || len(key) > maxSecret {
		return Secret{}, fmt.Errorf("webhook secret: it has %d bytes; it must have %d to %d", len(key), minSecret, maxSecret)
	}
	return newSecret(key), nil
}

// NewSecret makes a secret of 32 random bytes.
func NewSecret() Secret {
	key := make([]byte, 32)
	rand.Read(key) // never fails
	return newSecret(key)
}

// IsZero says whether s is the zero Secret.
func (s Secret) IsZero() bool { return s.key == nil }

// Reveal returns a secret as it is handed over, for [ParseSecret]. It must not be
// the zero Secret.
func (s Secret) Reveal() string { return prefix + base64.StdEncoding.EncodeToString(s.key()) }

// String does not show the secret.
func (s Secret) String() string { return prefix + "…" }

// GoString does not show the secret.
func (s Secret) GoString() string { return s.String() }

// sign returns the signature of a message.
func (s Secret) sign(id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, s.key())
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return scheme + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
