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
	Idle    = ticket.Longest // how long one is good that is not sealed again: as long as a ticket key verifies after it has signed last
	Longest = 12 * time.Hour // how long one is good in all
	MaxText = 3800           // bytes; a browser keeps 4,096 of a cookie with its name and attributes
)

// Session is who has signed in.
type Session struct {
	// Credential is what he has signed in with; "" where nobody is asked for one.
	Credential string `json:"c,omitempty"`
	// Tenant, Actor and Roles are what he calls himself where nobody is asked for a credential; "" is the default.
	Tenant string `json:"t,omitempty"`
	Actor  string `json:"a,omitempty"`
	Roles  string `json:"r,omitempty"`

	// SigningIn is what the browser keeps while its user is at the identity provider. A session with it is nobody's yet.
	SigningIn string `json:"l,omitempty"`

	// Token is what the forms of this session repeat. Seal makes it.
	Token string `json:"k"`
	// Began is when it was sealed first, and Sealed when last, in milliseconds since 1970 by the clock of the keys. Seal sets them.
	Began  int64 `json:"b"`
	Sealed int64 `json:"s"`
}

// Sealer seals and opens sessions. It is safe for concurrent use.
type Sealer struct{ keys ticket.Keys }

// New makes it.
func New(keys ticket.Keys) *Sealer { return &Sealer{keys} }

// Seal makes the text of a session. One that was opened keeps its token and its beginning, and is good for [Idle] more. Errors:
// InvalidRequest for what is too long; those of the keys.
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

// Open reads the text of a session that is good, and says how old its seal is. Errors: Unauthorized with an [auth.Refusal] as its
// cause; those of the keys.
func (s *Sealer) Open(ctx context.Context, text string) (of Session, age time.Duration, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") || len(text) > MaxText || len(raw) < len(uuid.UUID{}) {
		return of, 0, auth.Refuse(auth.Malformed, "the session is none")
	}
	id, sealed := raw[:len(uuid.UUID{})], raw[len(uuid.UUID{}):]
	key, err := s.keys.Find(ctx, uuid.UUID(id).String())
	if err != nil {
		return of, 0, err
	}
	if key == nil {
		return of, 0, auth.Refuse(auth.UnknownKey, "the session is sealed with no key that is known, or not any more")
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
		return Session{}, 0, auth.Refuse(auth.BadClaims, "the session does not say what a session can")
	}
	now := s.keys.Now()
	age = now.Sub(time.UnixMilli(of.Sealed))
	if age > Idle || now.Sub(time.UnixMilli(of.Began)) > Longest {
		return Session{}, 0, auth.Refuse(auth.Expired, "the session has ended")
	}
	return of, age, nil
}

// boxOf is what a key seals with: each text has a nonce of its own, by chance, which the box puts before it.
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
