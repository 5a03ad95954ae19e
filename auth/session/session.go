// Package session seals the credential of a signed-in user into the text of a cookie. Without the keys the cookie cannot be read, created
// or altered. Nothing is stored: every node with the ticket keys can open it. Each request is authorized with the credential again; the
// session adds no rights and does not outlive the credential.
//
// The text is the id of a key, a nonce and the AES-256-GCM of a [Session], in base64url. The key is derived from a ticket key by
// HKDF-SHA256 (RFC 5869) with a separate label, so that sessions and tickets cannot be confused.
package session

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/ticket"
	"github.com/pawlhq/pawl/workflow"
)

// Bounds of a session.
const (
	Idle    = ticket.Longest // maximum time between two seals: how long a ticket key verifies after it last signed
	Longest = 12 * time.Hour // maximum total duration
	MaxText = 3800           // bytes; browsers limit a cookie with name and attributes to 4,096
)

// Session is the content of a cookie.
type Session struct {
	// Credential is the user's credential. Empty if authentication is disabled.
	Credential string `json:"c,omitempty"`
	// Tenant, Actor and Roles are chosen by the user if authentication is disabled. Empty means the default.
	Tenant string `json:"t,omitempty"`
	Actor  string `json:"a,omitempty"`
	Roles  string `json:"r,omitempty"`

	// SigningIn is the state of a login in progress. A session with it is not authenticated.
	SigningIn string `json:"l,omitempty"`

	// Token is the CSRF token of the session's forms. Seal sets it.
	Token string `json:"k"`
	// Began and Sealed are the times of the first and the last seal, in milliseconds since 1970 by the clock of the keys. Seal sets them.
	Began  int64 `json:"b"`
	Sealed int64 `json:"s"`
}

// Sealer seals and opens sessions. It is safe for concurrent use.
type Sealer struct{ keys ticket.Keys }

// New returns a sealer that uses keys.
func New(keys ticket.Keys) *Sealer { return &Sealer{keys} }

// Seal returns the text of a session. An opened session keeps its token and its beginning, and its idle time starts again. Errors:
// InvalidRequest if it is too long; those of the keys.
func (s *Sealer) Seal(ctx context.Context, of Session) (string, error) {
	key, err := s.keys.Newest(ctx)
	if err != nil {
		return "", err
	}
	of.Token = cmp.Or(of.Token, rand.Text())
	of.Sealed = s.keys.Now().UnixMilli()
	of.Began = cmp.Or(of.Began, of.Sealed)
	plain, err := json.Marshal(of)
	if err != nil {
		return "", workflow.Errorf(workflow.InvalidRequest, "this is not valid UTF-8")
	}
	id, err := uuid.Parse(key.ID)
	if err != nil {
		return "", internal(err)
	}
	box, err := boxOf(key)
	if err != nil {
		return "", internal(err)
	}
	text := base64.RawURLEncoding.EncodeToString(append(id[:], box.Seal(nil, nil, plain, id[:])...))
	if len(text) > MaxText {
		over := (len(text)-MaxText)*3/4 + 1
		return "", workflow.Errorf(workflow.InvalidRequest, "the credential is too long for a browser's cookie by %d bytes", over)
	}
	return text, nil
}

func internal(err error) error {
	return &workflow.Error{Code: workflow.Internal, Message: "the session cannot be sealed", Cause: err}
}

// Open returns the session of a text, and the age of its seal. Errors: Unauthorized caused by an [auth.Refusal]; those of the keys.
func (s *Sealer) Open(ctx context.Context, text string) (of Session, age time.Duration, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") || len(text) > MaxText || len(raw) < len(uuid.UUID{}) {
		return of, 0, auth.Refuse(auth.Malformed, "invalid session")
	}
	id, sealed := raw[:len(uuid.UUID{})], raw[len(uuid.UUID{}):]
	key, err := s.keys.Find(ctx, uuid.UUID(id).String())
	if err != nil {
		return of, 0, err
	}
	if key == nil {
		return of, 0, auth.Refuse(auth.UnknownKey, "the session is sealed with an unknown or expired key")
	}
	box, err := boxOf(key)
	if err != nil {
		return of, 0, internal(err)
	}
	plain, err := box.Open(nil, nil, sealed, id)
	if err != nil {
		return of, 0, auth.Refuse(auth.BadSignature, "the session was altered")
	}
	if err := json.Unmarshal(plain, &of); err != nil {
		return Session{}, 0, auth.Refuse(auth.BadClaims, "the session has invalid content")
	}
	now := s.keys.Now()
	age = now.Sub(time.UnixMilli(of.Sealed))
	if age > Idle || now.Sub(time.UnixMilli(of.Began)) > Longest {
		return Session{}, 0, auth.Refuse(auth.Expired, "the session has ended")
	}
	return of, age, nil
}

// boxOf returns the cipher of a key. It prepends a random nonce to each text.
func boxOf(key *ticket.Key) (cipher.AEAD, error) {
	secret, err := hkdf.Key(sha256.New, key.Secret, nil, "pawl: session 1", 32)
	if err != nil {
		return nil, fmt.Errorf("derive: %w", err)
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
