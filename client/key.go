package client

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// NewKey returns a random idempotency key of 130 bits. Store it before the first call, so that a call after a restart repeats the same
// command instead of adding one.
func NewKey() string { return rand.Text() }

// ContentKey returns the idempotency key of a content: "content-" and the SHA-256 of its canonical JSON (RFC 8785) in base64url, 51 bytes.
// Equal contents have equal keys, whatever the order of their members. Include something that distinguishes two intents with equal
// contents, such as the number of an order or the date of a run. It returns an error if the content has no JSON form.
func ContentKey(content any) (string, error) {
	value, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("client: content of an idempotency key: %w", err)
	}
	canonical := jsontext.Value(value)
	if err := canonical.Canonicalize(); err != nil {
		return "", fmt.Errorf("client: content of an idempotency key: %w", err)
	}
	return "content-" + digest(canonical), nil
}

// FormKey returns the idempotency key of a form that a user submits: "form-" and a SHA-256 of both arguments in base64url, 48 bytes. The
// form is an identifier created when the form is rendered, so that sending the same page twice is one command. Keys of different users
// never collide. It returns an error if either argument is empty.
func FormKey(user, form string) (string, error) {
	if user == "" || form == "" {
		return "", errors.New("client: the idempotency key of a form requires a user and a form identifier")
	}
	length := binary.BigEndian.AppendUint64(nil, uint64(len(user))) // else "ab", "c" and "a", "bc" would be one
	return "form-" + digest(length, []byte(user), []byte(form)), nil
}

func digest(parts ...[]byte) string {
	hash := sha256.New()
	for _, part := range parts {
		hash.Write(part)
	}
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil))
}
