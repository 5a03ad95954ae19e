package provider

import (
	"context"
	"net/http"
	"slices"
	"sync"
)

// Charge is what is to be paid.
type Charge struct {
	Amount    int64  `json:"amount"`    // in minor units of the currency, above zero
	Currency  string `json:"currency"`  // ISO 4217
	Method    string `json:"method"`    // one of Methods
	Reference string `json:"reference"` // the client's own name for what is paid
}

// Methods are the ways to pay.
var Methods = []string{"card", "transfer", "invoice"}

// InvoiceLimit is the largest amount that is lent to a customer: an invoice
// above it is declined.
const InvoiceLimit = 100_000

// Receipt says that a charge has happened.
type Receipt struct {
	Key string `json:"key"` // the idempotency key, which names the charge
	Charge
}

// Provider is an http.Handler, and the same without HTTP. It is safe for
// concurrent use.
type Provider struct {
	mux *http.ServeMux

	mu       sync.Mutex
	accounts map[string]*account // by the keys of charges
	refunds  map[string]string   // the charges by the keys of their refunds
	arrived  map[Request]int     // how many, by operation and key
	behave   func(Request) Behaviour
}

// account is what is known of a charge's key.
type account struct {
	first   *Charge // nil until one has come
	refused *Error  // what the first charge came to, if not to money
	charges int     // that took the money
	refunds int     // that gave it back
	voided  bool    // refunded before any charge: none can happen any more
}

// New returns a provider that knows no charge and behaves well; see
// [Provider.Misbehave].
func New() *Provider {
	p := &Provider{accounts: map[string]*account{}, refunds: map[string]string{}, arrived: map[Request]int{}}
	p.mux = p.routes()
	return p
}

// Charge takes the money, once per key. The error is an *Error.
func (p *Provider) Charge(_ context.Context, key string, c Charge) (Receipt, error) {
	p.count(OpCharge, key)
	return p.charge(key, c)
}

// Charged returns the receipt of a charge, or nil if none with this key has happened. A refunded charge has happened.
func (p *Provider) Charged(_ context.Context, key string) (*Receipt, error) {
	p.count(OpCharged, key)
	return p.charged(key), nil
}

// Refund gives the money of a charge back, once. If the charge has not
// happened, it cannot happen any more.
func (p *Provider) Refund(_ context.Context, key string) error {
	p.count(OpRefund, key)
	_, err := p.refund(key, key)
	return err
}

func (p *Provider) charge(key string, c Charge) (Receipt, error) {
	if err := c.check(); err != nil {
		return Receipt{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.account(key)
	switch {
	case a.first != nil && *a.first != c:
		return Receipt{}, refusal(422, KeyReused, "the key belongs to another charge")
	case a.first != nil: // the same again
	case a.voided:
		a.first, a.refused = &c, refusal(409, Voided, "the charge was refunded before it came")
	case c.Method == "invoice" && c.Amount > InvoiceLimit:
		a.first, a.refused = &c, refusal(402, Declined, "no invoice above %d", InvoiceLimit)
	default:
		a.first = &c
		a.charges++
	}
	if a.refused != nil {
		return Receipt{}, a.refused
	}
	return Receipt{Key: key, Charge: c}, nil
}

func (p *Provider) charged(key string) *Receipt {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.accounts[key]
	if a == nil || a.charges == 0 {
		return nil
	}
	return &Receipt{Key: key, Charge: *a.first}
}

// refund reports whether money went back; else the charge's key is voided.
func (p *Provider) refund(key, charge string) (refunded bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, seen := p.refunds[key]; seen && before != charge {
		return false, refusal(422, KeyReused, "the key belongs to the refund of another charge")
	}
	p.refunds[key] = charge
	a := p.account(charge)
	switch {
	case a.charges == 0:
		a.voided = true
	case a.refunds == 0:
		a.refunds++
	}
	return a.charges > 0, nil
}

// account returns the account of a key, and creates it if necessary. The caller holds the mutex.
func (p *Provider) account(key string) *account {
	a := p.accounts[key]
	if a == nil {
		a = &account{}
		p.accounts[key] = a
	}
	return a
}

func (c Charge) check() error {
	switch {
	case c.Amount <= 0:
		return refusal(400, Invalid, "the amount is not above zero")
	case len(c.Currency) != 3:
		return refusal(400, Invalid, "the currency is not of three letters")
	case !slices.Contains(Methods, c.Method):
		return refusal(400, Invalid, "the method is none of %v", Methods)
	case c.Reference == "":
		return refusal(400, Invalid, "the reference is missing")
	}
	return nil
}
