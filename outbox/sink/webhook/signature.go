package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of Standard Webhooks.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// Tolerance is how far a message's timestamp may be from now, if a receiver has
// no reason for another limit.
const Tolerance = 5 * time.Minute

// What is wrong with a message that [Verify] refuses.
var (
	// ErrHeaders: a header is missing or malformed.
	ErrHeaders = errors.New("a webhook header is missing or malformed")
	// ErrTimestamp: the message is too old, or from the future.
	ErrTimestamp = errors.New("the webhook's timestamp is too far from now")
	// ErrSignature: no signature is by one of the secrets.
	ErrSignature = errors.New("no signature of the webhook matches")
)

const (
	prefix    = "whsec_"
	minSecret = 24 // bytes, as Standard Webhooks asks
	maxSecret = 64
	scheme    = "v1,"
)

// Secret signs and verifies. Printing one does not show it, nor does printing
// what contains it: the key is behind a function, where package fmt cannot get
// at it.
type Secret struct{ key func() []byte }

func newSecret(key []byte) Secret { return Secret{func() []byte { return key }} }

// ParseSecret reads a secret as it is handed over: "whsec_" and the base64 of 24
// to 64 bytes.
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

// Sign sets the headers of a message, with a signature by each secret: while a
// secret is being replaced, the receiver may know either. The id must not
// contain a dot, and no secret be the zero Secret.
func Sign(secrets []Secret, h http.Header, id string, at time.Time, body []byte) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		signatures[i] = s.sign(id, timestamp, body)
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, timestamp)
	h.Set(HeaderSignature, strings.Join(signatures, " "))
}

// Verify checks a message that was received and returns its id, by which a
// repetition is recognized. One signature by one of the secrets is enough, and
// the zero Secret has none. The
// body must be the bytes as they came. The error is [ErrHeaders],
// [ErrTimestamp] or [ErrSignature].
func Verify(secrets []Secret, h http.Header, body []byte, now time.Time, tolerance time.Duration) (id string, err error) {
	id, timestamp := h.Get(HeaderID), h.Get(HeaderTimestamp)
	at, ok := parseTimestamp(timestamp)
	// With a dot in it, an id could take in a part of the timestamp or the body.
	if !ok || id == "" || strings.Contains(id, ".") {
		return "", ErrHeaders
	}
	if age := now.Sub(at); age > tolerance || age < -tolerance {
		return "", ErrTimestamp
	}
	signatures := strings.Fields(h.Get(HeaderSignature))
	if len(signatures) == 0 {
		return "", ErrHeaders
	}
	for _, s := range secrets {
		if s.key == nil {
			continue
		}
		want := []byte(s.sign(id, timestamp, body))
		for _, signature := range signatures {
			if hmac.Equal([]byte(signature), want) {
				return id, nil
			}
		}
	}
	return "", ErrSignature
}

// parseTimestamp reads seconds since 1970, written in the one way that there is.
func parseTimestamp(s string) (time.Time, bool) {
	seconds, err := strconv.ParseInt(s, 10, 64)
	if err != nil || seconds < 0 || len(s) > 11 || strconv.FormatInt(seconds, 10) != s {
		return time.Time{}, false
	}
	return time.Unix(seconds, 0), true
}
