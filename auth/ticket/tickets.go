package ticket

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/internal/jws"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Key signs tickets.
type Key struct {
	ID     string
	Secret []byte // 32 bytes
	// Gone is closed when the key is removed; nil if it cannot be removed.
	Gone <-chan struct{}
}

// Keys are the signing keys of all nodes. Its methods return *workflow.Error.
type Keys interface {
	// Newest returns the current signing key. Error: Unavailable.
	Newest(ctx context.Context) (*Key, error)
	// Find returns the key with an id, or nil. Error: Unavailable.
	Find(ctx context.Context, id string) (*Key, error)
	// Now returns the time shared by all nodes.
	Now() time.Time
}

// Vouched validates the API key that requested a ticket. ended is closed when the key is revoked. Its errors are returned to the ticket's
// holder.
type Vouched func(ctx context.Context, keyID string) (ended <-chan struct{}, err error)

// Tickets issues and verifies tickets. It is safe for concurrent use.
type Tickets struct {
	keys    Keys
	vouched Vouched
	ends    ends
}

// New returns a Tickets. If vouched is nil, tickets requested with an API key are rejected. Stop it when done.
func New(keys Keys, vouched Vouched) *Tickets {
	ts := &Tickets{keys: keys, vouched: vouched, ends: ends{all: map[both]chan struct{}{}}}
	ts.ends.ctx, ts.ends.stop = context.WithCancel(context.Background())
	return ts
}

// Stop waits for all goroutines.
func (ts *Tickets) Stop() {
	ts.ends.stop()
	ts.ends.running.Wait()
}

// claims are the signed claims.
type claims struct {
	Tenant string   `json:"tenant"`
	Actor  string   `json:"actor"`
	Roles  []string `json:"roles,omitempty"`
	Grants string   `json:"grants"`
	By     string   `json:"by,omitempty"`
	Key    string   `json:"key,omitempty"`
	Until  int64    `json:"until"` // milliseconds since 1970 by the clock of the keys
}

// Issue returns the text of a ticket. Its Until is by the clock of this machine, at most [Longest] from now. Errors: InvalidRequest; those
// of the Keys.
func (ts *Tickets) Issue(ctx context.Context, t *Ticket) (string, error) {
	if err := t.Check(); err != nil {
		return "", workflow.Errorf(workflow.InvalidRequest, "%s", err)
	}
	lasts := time.Until(t.Until)
	if lasts <= 0 || lasts > Longest {
		return "", workflow.Errorf(workflow.InvalidRequest, "a ticket lasts for up to %s", Longest)
	}
	key, err := ts.keys.Newest(ctx)
	if err != nil {
		return "", err
	}
	text, err := sign(key, &claims{t.Tenant, t.Actor, t.Roles, t.Grants.String(), t.By, t.Key, ts.keys.Now().Add(lasts).UnixMilli()})
	if err != nil {
		return "", &workflow.Error{Code: workflow.Internal, Message: "the ticket cannot be signed", Cause: err}
	}
	if len(text) > MaxText {
		return "", workflow.Errorf(workflow.InvalidRequest, "the ticket would have %d bytes, and %d are the most: ask for fewer grants and roles",
			len(text), MaxText)
	}
	return text, nil
}

func sign(key *Key, c *claims) (string, error) {
	named := (&jose.SignerOptions{}).WithHeader("kid", key.ID)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: key.Secret}, named)
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	text, err := signed.CompactSerialize()
	return Prefix + text, err
}

// Verify returns the principal of a ticket. Errors: Unauthorized caused by an [auth.Refusal]; those of Keys and Vouched.
func (ts *Tickets) Verify(ctx context.Context, text string) (auth.Principal, error) {
	var none auth.Principal
	if len(text) > MaxText || !Is(text) || !jws.Canonical(text[len(Prefix):]) {
		return none, auth.Refuse(auth.Malformed, "invalid ticket")
	}
	payload, key, err := ts.signed(ctx, text[len(Prefix):])
	if err != nil {
		return none, err
	}
	t, lasts, err := read(payload, ts.keys.Now())
	if err != nil {
		return none, err
	}
	ended := key.Gone
	if t.Key != "" {
		if ended, err = ts.checkKey(ctx, &t, key); err != nil {
			return none, err
		}
	}
	until := time.Now().Add(lasts)
	return auth.Principal{Tenant: t.Tenant, Actor: t.Actor, Roles: t.Roles, Grants: t.Grants, Proof: t.proof(), Until: until, Ended: ended,
		Credential: transitions.Credential{Key: t.Key, Ticket: key.ID, Until: until}}, nil
}

// signed returns the payload of a ticket and its key.
func (ts *Tickets) signed(ctx context.Context, token string) ([]byte, *Key, error) {
	parsed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.HS256})
	if _, other := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); other {
		return nil, nil, auth.Refuse(auth.BadAlgorithm, "the ticket is unsigned or uses another algorithm")
	}
	if err != nil || len(parsed.Signatures) != 1 {
		return nil, nil, auth.Refuse(auth.Malformed, "invalid ticket")
	}
	key, err := ts.keys.Find(ctx, parsed.Signatures[0].Protected.KeyID)
	if err != nil {
		return nil, nil, err
	}
	if key == nil {
		return nil, nil, auth.Refuse(auth.UnknownKey, "the ticket is signed with an unknown or expired key")
	}
	payload, err := parsed.Verify(key.Secret)
	if err != nil {
		return nil, nil, auth.Refuse(auth.BadSignature, "the ticket has a wrong signature")
	}
	return payload, key, nil
}

// read parses the payload of a ticket and returns its remaining lifetime. It validates the content again, so that a leaked key can only be
// used within the limits of tickets.
func read(payload []byte, now time.Time) (t Ticket, lasts time.Duration, err error) {
	var in claims
	if err := json.Unmarshal(payload, &in, json.RejectUnknownMembers(true)); err != nil {
		return t, 0, errClaims
	}
	grants, err := auth.ParseGrants(in.Grants)
	if err != nil {
		return t, 0, errClaims
	}
	t = Ticket{Tenant: in.Tenant, Actor: in.Actor, Roles: in.Roles, Grants: grants, By: in.By, Key: in.Key}
	if t.Check() != nil {
		return t, 0, errClaims
	}
	switch lasts = time.UnixMilli(in.Until).Sub(now); {
	case lasts <= 0:
		return t, 0, auth.Refuse(auth.Expired, "the ticket has expired")
	case lasts > Longest+slack:
		return t, 0, errClaims
	}
	return t, lasts, nil
}

// slack is the tolerated difference between the nodes' clocks of the keys.
const slack = time.Minute

var errClaims = auth.Refuse(auth.BadClaims, "the ticket has invalid content")

// checkKey validates the API key of a ticket and returns a channel that is closed when the ticket ends.
func (ts *Tickets) checkKey(ctx context.Context, t *Ticket, key *Key) (<-chan struct{}, error) {
	if ts.vouched == nil {
		return nil, auth.Refuse(auth.UnknownKey, "the ticket was requested with an API key, but API keys are disabled here")
	}
	ended, err := ts.vouched(ctx, t.Key)
	if err != nil {
		return nil, err
	}
	return ts.ends.first(key.Gone, ended), nil
}

// ends merges the end of a ticket's signing key with that of its API key. Tickets with the same two share one channel, so their number is
// bounded by the API keys in use times the few signing keys.
type ends struct {
	mu      sync.Mutex
	all     map[both]chan struct{}
	running sync.WaitGroup
	ctx     context.Context // cancelled by stop
	stop    context.CancelFunc
}

type both struct{ a, b <-chan struct{} }

// first returns a channel that is closed when a or b is closed. Nil channels are never closed.
func (e *ends) first(a, b <-chan struct{}) <-chan struct{} {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	one := both{a, b}
	if known, is := e.all[one]; is {
		return known
	}
	first := make(chan struct{})
	e.all[one] = first
	e.running.Go(func() {
		select {
		case <-a:
			close(first)
		case <-b:
			close(first)
		case <-e.ctx.Done():
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.all, one)
	})
	return first
}
