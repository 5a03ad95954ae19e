package session_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/session"
	"github.com/pawlhq/pawl/auth/ticket"
	"github.com/pawlhq/pawl/workflow"
)

// keys are ticket keys, newest first, with a clock controlled by tests.
type keys struct {
	all []*ticket.Key
	now time.Time
}

func newKeys(n int) *keys {
	k := &keys{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for i := range n {
		k.all = append(k.all, &ticket.Key{ID: uuid.NewString(), Secret: bytes.Repeat([]byte{byte(i)}, 32)})
	}
	return k
}

func (k *keys) Newest(context.Context) (*ticket.Key, error) { return k.all[0], nil }

func (k *keys) Find(_ context.Context, id string) (*ticket.Key, error) {
	for _, one := range k.all {
		if one.ID == id {
			return one, nil
		}
	}
	return nil, nil
}

func (k *keys) Now() time.Time { return k.now }

func reason(err error) auth.Reason {
	if refusal, is := errors.AsType[*auth.Refusal](err); is && workflow.CodeOf(err) == workflow.Unauthorized {
		return refusal.Reason
	}
	return ""
}

func TestSessionRoundTripIsSecret(t *testing.T) {
	k := newKeys(2)
	s := session.New(k)
	const credential = "pawl_4fKq0ZbT9xWc_secret"
	text, err := s.Seal(t.Context(), session.Session{Credential: credential, Actor: "änn"})
	require.NoError(t, err)
	raw, _ := base64.RawURLEncoding.DecodeString(text)
	assert.NotContains(t, string(raw), "secret", "the credential can be read")
	k.all[0], k.all[1] = k.all[1], k.all[0] // another key seals now
	k.now = k.now.Add(59 * time.Minute)
	got, age, err := s.Open(t.Context(), text)
	require.Truef(t, err == nil && got.Credential == credential && got.Actor == "änn" && len(got.Token) >= 20 && age == 59*time.Minute,
		"%+v, %s, %v", got, age, err)
	again, err := s.Seal(t.Context(), got)
	require.Truef(t, err == nil && again != text, "%v %v", again, err)
	k.now = k.now.Add(59 * time.Minute)
	later, _, err := s.Open(t.Context(), again)
	assert.Truef(t, err == nil && later.Token == got.Token && later.Began == got.Began, "%+v, %v", later, err)
	_, _, err = s.Open(t.Context(), text)
	assert.Equalf(t, auth.Expired, reason(err), "it is good for longer than an hour: %v", err)
}

func TestSessionHasMaximumDuration(t *testing.T) {
	k := newKeys(1)
	s := session.New(k)
	text, err := s.Seal(t.Context(), session.Session{Credential: "c"})
	for n := 0; err == nil; n++ {
		var of session.Session
		k.now = k.now.Add(50 * time.Minute)
		if of, _, err = s.Open(t.Context(), text); err == nil {
			text, err = s.Seal(t.Context(), of)
		}
		require.True(t, n <= 20, "it does not end")
	}
	assert.Equal(t, auth.Expired, reason(err), err)
}

func TestInvalidSessionIsRejected(t *testing.T) {
	k := newKeys(2)
	s := session.New(k)
	text, err := s.Seal(t.Context(), session.Session{Credential: "c"})
	require.NoError(t, err)
	raw, _ := base64.RawURLEncoding.DecodeString(text)
	with := func(at int, b byte) string {
		other := bytes.Clone(raw)
		other[at] ^= b
		return base64.RawURLEncoding.EncodeToString(other)
	}
	of := func(id string) string {
		u := uuid.MustParse(id)
		return base64.RawURLEncoding.EncodeToString(append(u[:], raw[16:]...))
	}
	for name, c := range map[string]struct {
		text string
		want auth.Reason
	}{
		"empty":           {"", auth.Malformed},
		"no base64":       {text[:20] + "\n" + text[20:], auth.Malformed},
		"too long":        {strings.Repeat("A", session.MaxText+4), auth.Malformed},
		"the id alone":    {base64.RawURLEncoding.EncodeToString(raw[:16]), auth.BadSignature},
		"an unknown key":  {with(3, 1), auth.UnknownKey},
		"another key":     {of(k.all[1].ID), auth.BadSignature},
		"another nonce":   {with(20, 1), auth.BadSignature},
		"another content": {with(40, 0x80), auth.BadSignature},
		"cut":             {base64.RawURLEncoding.EncodeToString(raw[:len(raw)-1]), auth.BadSignature},
	} {
		if got, _, err := s.Open(t.Context(), c.text); reason(err) != c.want || got.Credential != "" {
			t.Errorf("%s: %+v, %v (%s)", name, got, err, reason(err))
		}
	}
	// A ticket signed with the same secret is not a session.
	tickets := ticket.New(k, nil)
	grants, _ := auth.ParseGrants("read:order")
	signed, err := tickets.Issue(t.Context(), &ticket.Ticket{Tenant: "t", Actor: "a", Grants: grants, Until: time.Now().Add(time.Minute)})
	require.NoError(t, err)
	_, _, err = s.Open(t.Context(), signed)
	assert.Equal(t, auth.Malformed, reason(err), err)
	_, err = s.Seal(t.Context(), session.Session{Credential: strings.Repeat("x", 3000)})
	assert.Equalf(t, workflow.InvalidRequest, workflow.CodeOf(err), "what is too long for a cookie: %v", err)
}
