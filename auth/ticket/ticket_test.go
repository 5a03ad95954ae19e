package ticket_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/ticket"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/workflow"
)

// keys are ticket keys, the first of which signs.
type keys struct {
	all   []*ticket.Key
	ahead time.Duration // of this machine's clock
}

func newKeys(ids ...string) *keys {
	k := &keys{}
	for _, id := range ids {
		k.all = append(k.all, &ticket.Key{ID: id, Secret: bytes.Repeat([]byte(id[:1]), 32), Gone: make(chan struct{})})
	}
	return k
}

func (k *keys) Newest(context.Context) (*ticket.Key, error) { return k.all[0], nil }

func (k *keys) Find(_ context.Context, id string) (*ticket.Key, error) {
	i := slices.IndexFunc(k.all, func(one *ticket.Key) bool { return one.ID == id })
	if i < 0 {
		return nil, nil
	}
	return k.all[i], nil
}

func (k *keys) Now() time.Time { return time.Now().Add(k.ahead) }

func grants(t testing.TB, text string) auth.Grants {
	t.Helper()
	all, err := auth.ParseGrants(text)
	require.NoError(t, err)
	return all
}

// good returns a ticket for five minutes.
func good(t testing.TB) *ticket.Ticket {
	t.Helper()
	return &ticket.Ticket{Tenant: "acme", Actor: "ann", Roles: []string{"clerk"}, Grants: grants(t, "read:order#A-17 submit:order#A-17/pay"),
		By: "jwt https://idp.example", Until: time.Now().Add(5 * time.Minute)}
}

func issue(t testing.TB, ts *ticket.Tickets, what *ticket.Ticket) string {
	t.Helper()
	text, err := ts.Issue(t.Context(), what)
	require.NoError(t, err)
	return text
}

func reason(err error) auth.Reason {
	if refusal, is := errors.AsType[*auth.Refusal](err); is && workflow.CodeOf(err) == workflow.Unauthorized {
		return refusal.Reason
	}
	return ""
}

func TestTicketRoundTrip(t *testing.T) {
	k := newKeys("a", "b")
	ts := ticket.New(k, nil)
	text := issue(t, ts, good(t))
	assert.True(t, ticket.Is(text), text)
	p, err := ts.Verify(t.Context(), text)
	require.NoError(t, err)
	if p.Tenant != "acme" || p.Actor != "ann" || p.Grants.String() != "read:order#A-17 submit:order#A-17/pay" ||
		!slices.Equal(p.Roles, []string{"clerk"}) ||
		p.Proof.String() != "ticket jwt https://idp.example" || p.Ended != k.all[0].Gone ||
		time.Until(p.Until).Round(time.Minute) != 5*time.Minute {
		t.Errorf("%+v", p)
	}
	// Another node with a wrong clock knows the key too.
	other := newKeys("b", "a")
	other.ahead, other.all[1].Secret = time.Second, k.all[0].Secret
	p, err = ticket.New(other, nil).Verify(t.Context(), text)
	left := time.Until(p.Until)
	assert.Truef(t, err == nil && left <= 5*time.Minute-time.Second && left >= 4*time.Minute, "%s, %v", left, err)
	assert.Truef(t, strings.HasPrefix(ticket.Prefix, "pawl") && len(text) <= 400, "%d bytes: %s", len(text), text)
}

func TestTicketBounds(t *testing.T) {
	ts := ticket.New(newKeys("a"), nil)
	long := strings.Repeat("x", 300)
	for problem, change := range map[string]func(*ticket.Ticket){
		"the tenant is empty":                  func(t *ticket.Ticket) { t.Tenant = "" },
		"the tenant is longer than 64 bytes":   func(t *ticket.Ticket) { t.Tenant = long },
		"the actor is empty":                   func(t *ticket.Ticket) { t.Actor = "" },
		"the actor is longer than 255 bytes":   func(t *ticket.Ticket) { t.Actor = long },
		"the actor contains a NUL":             func(t *ticket.Ticket) { t.Actor = "a\x00" },
		"the actor is not valid UTF-8":         func(t *ticket.Ticket) { t.Actor = "a\xff" },
		`the actor begins with "pawl:"`:        func(t *ticket.Ticket) { t.Actor = "pawl:timer" },
		`the actor begins with "inbox:"`:       func(t *ticket.Ticket) { t.Actor = "inbox:payments" },
		"a role is empty":                      func(t *ticket.Ticket) { t.Roles = []string{""} },
		"duplicate role":                       func(t *ticket.Ticket) { t.Roles = []string{"a", "a"} },
		"a role contains a NUL":                func(t *ticket.Ticket) { t.Roles = []string{"\x00"} },
		"more than 64 roles":                   func(t *ticket.Ticket) { t.Roles = make([]string, 65) },
		"there is no grant":                    func(t *ticket.Ticket) { t.Grants = nil },
		"more than 32 grants":                  func(t *ticket.Ticket) { t.Grants = make(auth.Grants, 33) },
		`duplicate grant "read:order"`:         func(x *ticket.Ticket) { g := grants(t, "read:order"); x.Grants = append(g, g...) },
		`the grant "read" is for everything`:   func(x *ticket.Ticket) { x.Grants = grants(t, "read") },
		`the grant "act-as:order" is not for`:  func(x *ticket.Ticket) { x.Grants = grants(t, "act-as:order") },
		`the grant "operate:order" is not for`: func(x *ticket.Ticket) { x.Grants = grants(t, "operate:order") },
		`the grant "operate:all" is not for`:   func(x *ticket.Ticket) { x.Grants = grants(t, "operate:all") },
		"a ticket lasts for up to 1h":          func(t *ticket.Ticket) { t.Until = time.Now().Add(time.Hour + time.Minute) },
		"a ticket lasts for":                   func(t *ticket.Ticket) { t.Until = time.Now() },
		"exceeds the limit":                    func(t *ticket.Ticket) { t.By = strings.Repeat("x", 510) },
		"would have 4": func(x *ticket.Ticket) {
			x.Grants = nil
			for _, c := range "abcdefghijkl" {
				x.Grants = append(x.Grants, grants(t, "read:order#"+strings.Repeat(string(c), 250))...)
			}
		},
	} {
		what := good(t)
		change(what)
		if text, err := ts.Issue(t.Context(), what); workflow.CodeOf(err) != workflow.InvalidRequest || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %q, %v", problem, text, err)
		}
	}
}

// signed returns a ticket with any claims.
func signed(t testing.TB, a jose.SignatureAlgorithm, key any, claims any) string {
	t.Helper()
	options := &jose.SignerOptions{}
	if named, is := key.(jose.JSONWebKey); is {
		options.WithHeader("kid", named.KeyID)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: a, Key: key}, options)
	require.NoError(t, err)
	payload, err := json.Marshal(claims)
	require.NoError(t, err)
	jws, err := signer.Sign(payload)
	require.NoError(t, err)
	text, err := jws.CompactSerialize()
	require.NoError(t, err)
	return ticket.Prefix + text
}

type claims = map[string]any

func TestInvalidTicketIsRejected(t *testing.T) {
	k := newKeys("a")
	ts := ticket.New(k, nil)
	text := issue(t, ts, good(t))
	parts := strings.Split(text, ".")
	of := func(change claims) string {
		all := claims{"tenant": "acme", "actor": "ann", "grants": "read:order", "until": time.Now().Add(time.Minute).UnixMilli()}
		for name, value := range change {
			all[name] = value
		}
		return signed(t, jose.HS256, jose.JSONWebKey{Key: k.all[0].Secret, KeyID: "a"}, all)
	}
	_, err := ts.Verify(t.Context(), of(nil))
	require.NoError(t, err)
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"a"}`))
	for name, c := range map[string]struct {
		text string
		want auth.Reason
	}{
		"empty":              {"", auth.Malformed},
		"the prefix alone":   {ticket.Prefix, auth.Malformed},
		"without it":         {strings.TrimPrefix(text, ticket.Prefix), auth.Malformed},
		"cut":                {parts[0] + "." + parts[1], auth.Malformed},
		"padded":             {text + "=", auth.Malformed},
		"a line break in it": {text[:40] + "\n" + text[40:], auth.Malformed},
		"too long":           {ticket.Prefix + strings.Repeat("a", ticket.MaxText), auth.Malformed},
		"alg none":           {ticket.Prefix + none + "." + parts[1] + ".", auth.BadAlgorithm},
		"another algorithm": {signed(t, jose.HS512, jose.JSONWebKey{Key: bytes.Repeat([]byte("a"), 64), KeyID: "a"}, claims{}),
			auth.BadAlgorithm},
		"an unknown key": {signed(t, jose.HS256, jose.JSONWebKey{Key: k.all[0].Secret, KeyID: "z"}, claims{}), auth.UnknownKey},
		"no key":         {signed(t, jose.HS256, k.all[0].Secret, claims{}), auth.UnknownKey},
		"another secret": {signed(t, jose.HS256, jose.JSONWebKey{Key: bytes.Repeat([]byte("z"), 32), KeyID: "a"}, claims{}),
			auth.BadSignature},
		"another claim":           {parts[0] + "." + strings.Split(of(nil), ".")[1] + "." + parts[2], auth.BadSignature},
		"expired":                 {of(claims{"until": time.Now().Add(-time.Millisecond).UnixMilli()}), auth.Expired},
		"longer than tickets are": {of(claims{"until": time.Now().Add(2 * time.Hour).UnixMilli()}), auth.BadClaims},
		"no tenant":               {of(claims{"tenant": ""}), auth.BadClaims},
		"no actor":                {of(claims{"actor": nil}), auth.BadClaims},
		"everything":              {of(claims{"grants": "read"}), auth.BadClaims},
		"an operator's":           {of(claims{"grants": "operate:order"}), auth.BadClaims},
		"nothing":                 {of(claims{"grants": ""}), auth.BadClaims},
		"no grant":                {of(claims{"grants": "all"}), auth.BadClaims},
		"what we do not know":     {of(claims{"scope": "read"}), auth.BadClaims},
		"a key of nobody":         {of(claims{"key": "k1"}), auth.UnknownKey},
	} {
		p, err := ts.Verify(t.Context(), c.text)
		assert.Truef(t, reason(err) == c.want && p.Actor == "", "%s: %+v, %v (%s)", name, p, err, reason(err))
	}
}

func TestTicketEndsWithKeys(t *testing.T) {
	k := newKeys("a")
	gone, revoked := make(chan struct{}), make(chan struct{})
	k.all[0].Gone = gone
	vouched := map[string]<-chan struct{}{"k1": revoked, "k2": make(chan struct{})}
	ts := ticket.New(k, func(_ context.Context, id string) (<-chan struct{}, error) {
		if ended, is := vouched[id]; is {
			return ended, nil
		}
		return nil, auth.Refuse(auth.Revoked, "the API key was revoked")
	})
	defer ts.Stop()
	var ended []<-chan struct{}
	for _, key := range []string{"k1", "k1", "k2", ""} {
		what := good(t)
		what.Key = key
		p, err := ts.Verify(t.Context(), issue(t, ts, what))
		require.NoError(t, err)
		ended = append(ended, p.Ended)
	}
	close(revoked)
	for i, one := range ended[:2] {
		await.Receive(t, "the end of what a revoked key has asked for", one)
		assert.True(t, ended[0] == ended[i], "tickets of one key have several ends")
	}
	for _, one := range ended[2:] {
		select {
		case <-one:
			t.Error("it has ended with another key")
		default:
		}
	}
	close(gone)
	for _, one := range ended {
		await.Receive(t, "the end with the signing key", one)
	}
	what := good(t)
	what.Key = "k3"
	_, err := ts.Verify(t.Context(), issue(t, ts, what))
	assert.Equal(t, auth.Revoked, reason(err), err)
}

// Only texts that crypto/hmac verifies to the last bit are accepted.
func FuzzTicket(f *testing.F) {
	k := newKeys("a")
	ts := ticket.New(k, nil)
	text := issue(f, ts, good(f))
	head, _, _ := strings.Cut(text, ".")
	f.Add(text)
	f.Add(ticket.Prefix)
	f.Add(text[:len(text)-1])
	f.Add(strings.Replace(text, ".", "..", 1))
	for i := 0; i < len(text); i += 7 {
		f.Add(text[:i] + "A" + text[i+1:])
	}
	f.Fuzz(func(t *testing.T, altered string) {
		_, err := ts.Verify(t.Context(), altered)
		if err != nil {
			assert.NotEqualf(t, auth.Reason(""), reason(err), "%q: %v", altered, err)
			return
		}
		signed, signature, _ := strings.Cut(strings.TrimPrefix(altered, ticket.Prefix), ".")
		payload, signature, _ := strings.Cut(signature, ".")
		mac := hmac.New(sha256.New, k.all[0].Secret)
		mac.Write([]byte(signed + "." + payload))
		assert.Truef(t, ticket.Prefix+signed == head && signature == base64.RawURLEncoding.EncodeToString(mac.Sum(nil)),
			"%q is taken", altered)
	})
}

func BenchmarkVerify(b *testing.B) {
	ts := ticket.New(newKeys("a"), nil)
	text := issue(b, ts, good(b))
	b.ReportAllocs()
	for b.Loop() {
		_, err := ts.Verify(b.Context(), text)
		require.NoError(b, err)
	}
}
