package provider_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/order/provider"
)

// serve starts a provider and a client of it.
func serve(t *testing.T) (*provider.Provider, *provider.Client) {
	t.Helper()
	p := provider.New()
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return p, &provider.Client{URL: server.URL, HTTP: server.Client()}
}

// payments is what the client and the provider itself have in common.
type payments interface {
	Charge(ctx context.Context, key string, c provider.Charge) (provider.Receipt, error)
	Charged(ctx context.Context, key string) (*provider.Receipt, error)
	Refund(ctx context.Context, key string) error
}

// both runs a test against a provider over HTTP, and without.
func both(t *testing.T, test func(t *testing.T, p *provider.Provider, pay payments)) {
	t.Run("over HTTP", func(t *testing.T) {
		p, c := serve(t)
		test(t, p, c)
	})
	t.Run("in memory", func(t *testing.T) {
		p := provider.New()
		test(t, p, p)
	})
}

var books = provider.Charge{Amount: 129900, Currency: "EUR", Method: "card", Reference: "c-1:k-9"}

// by is the books paid in another way.
func by(method string) provider.Charge {
	c := books
	c.Method = method
	return c
}

func codeOf(err error) string {
	if e, ok := errors.AsType[*provider.Error](err); ok {
		return e.Code
	}
	return ""
}

func wantRefused(t *testing.T, err error, code string) {
	t.Helper()
	assert.Truef(t, codeOf(err) == code && provider.IsFinal(err),
		"got %v, final: %v; want %s, and final", err, provider.IsFinal(err), code)
}

// wantEntry compares what the ledger says of a key. Requests are not compared
// where none are wanted.
func wantEntry(t *testing.T, p *provider.Provider, key string, want provider.Entry) {
	t.Helper()
	got := p.Ledger()[key]
	if want.Requests == 0 {
		got.Requests = 0
	}
	if want.Reference == "" {
		got.Reference, got.Amount = "", 0
	}
	assert.Equalf(t, want, got, "the ledger has of %s", key)
}

func TestChargeHappensOncePerKey(t *testing.T) {
	both(t, func(t *testing.T, p *provider.Provider, pay payments) {
		r, err := pay.Charged(t.Context(), "k")
		assert.Truef(t, r == nil && err == nil, "before it was charged: %v, %v", r, err)
		want := provider.Receipt{Key: "k", Charge: books}
		for range 3 {
			got, err := pay.Charge(t.Context(), "k", books)
			assert.Truef(t, got == want && err == nil, "got %+v, %v; want %+v", got, err, want)
		}
		r, err = pay.Charged(t.Context(), "k")
		assert.Truef(t, err == nil && r != nil && *r == want, "after it was charged: %v, %v", r, err)
		wantEntry(t, p, "k", provider.Entry{Reference: "c-1:k-9", Amount: 129900, Requests: 3, Charges: 1})
	})
}

func TestKeyBelongsToItsFirstCharge(t *testing.T) {
	both(t, func(t *testing.T, p *provider.Provider, pay payments) {
		if _, err := pay.Charge(t.Context(), "k", by("transfer")); err != nil {
			t.Fatal(err)
		}
		_, err := pay.Charge(t.Context(), "k", books)
		wantRefused(t, err, provider.KeyReused)
		_, err = pay.Charge(t.Context(), "k", by("transfer"))
		assert.NoError(t, err, "the first charge again")
		wantEntry(t, p, "k", provider.Entry{Charges: 1})
	})
}

func TestInvoiceAboveTheLimitIsDeclinedForGood(t *testing.T) {
	both(t, func(t *testing.T, p *provider.Provider, pay payments) {
		for range 2 {
			_, err := pay.Charge(t.Context(), "k", by("invoice"))
			wantRefused(t, err, provider.Declined)
		}
		r, err := pay.Charged(t.Context(), "k")
		assert.Truef(t, r == nil && err == nil, "a declined charge has the receipt %v, %v", r, err)
		wantEntry(t, p, "k", provider.Entry{Requests: 2})

		small := by("invoice")
		small.Amount = provider.InvoiceLimit
		_, err = pay.Charge(t.Context(), "small", small)
		assert.NoError(t, err, "an invoice of the limit")
		_, err = pay.Charge(t.Context(), "card", books)
		assert.NoError(t, err, "the same by card, with a new key")
	})
}

func TestRefundHappensOnce(t *testing.T) {
	both(t, func(t *testing.T, p *provider.Provider, pay payments) {
		_, err := pay.Charge(t.Context(), "k", books)
		require.NoError(t, err)
		for range 3 {
			assert.NoError(t, pay.Refund(t.Context(), "k"))
		}
		wantEntry(t, p, "k", provider.Entry{Charges: 1, Refunds: 1})
		_, err = pay.Charge(t.Context(), "k", books)
		assert.NoError(t, err, "a retry of the charge; want the answer that it had")
		r, err := pay.Charged(t.Context(), "k")
		assert.Truef(t, r != nil && err == nil, "it has happened, but: %v, %v", r, err)
		wantEntry(t, p, "k", provider.Entry{Charges: 1, Refunds: 1})
	})
}

// A caller that refunds a charge with an unknown outcome prevents a later charge.
func TestRefundBeforeTheChargeVoidsItsKey(t *testing.T) {
	both(t, func(t *testing.T, p *provider.Provider, pay payments) {
		require.NoError(t, pay.Refund(t.Context(), "k"))
		for range 2 {
			_, err := pay.Charge(t.Context(), "k", books)
			wantRefused(t, err, provider.Voided)
		}
		assert.NoError(t, pay.Refund(t.Context(), "k"))
		r, err := pay.Charged(t.Context(), "k")
		assert.Truef(t, r == nil && err == nil, "a voided charge has the receipt %v, %v", r, err)
		wantEntry(t, p, "k", provider.Entry{Requests: 2, Voided: true})
	})
}

// exchange is one request as it goes over the wire.
type exchange struct {
	method, path, key, body string
	status                  int
	answer                  string
}

func (e exchange) check(t *testing.T, url string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), e.method, url+e.path, strings.NewReader(e.body))
	require.NoError(t, err)
	if e.key != "" {
		r.Header.Set("Idempotency-Key", e.key)
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.Truef(t, answer.StatusCode == e.status && strings.Contains(string(body), e.answer),
		"%s %s of %q with %s: %d %s; want %d %s", e.method, e.path, e.key, e.body, answer.StatusCode, body, e.status, e.answer)
}

func TestAnswersOnTheWire(t *testing.T) {
	_, c := serve(t)
	const charge = `{"amount":1000,"currency":"EUR","method":"card","reference":"c-1:k-9"}`
	const receipt = `{"key":"k","amount":1000,"currency":"EUR","method":"card","reference":"c-1:k-9"}`
	for _, e := range []exchange{
		{"GET", "/charges/k", "", "", 404, `"code":"not_charged"`},
		{"POST", "/charges", "k", charge, 200, receipt},
		{"POST", "/charges", "k", charge, 200, receipt},
		{"POST", "/charges", "k", strings.Replace(charge, "1000", "1001", 1), 422, `"code":"key_reused"`},
		{"GET", "/charges/k", "", "", 200, receipt},
		{"POST", "/charges", "big", strings.NewReplacer("1000", "100001", "card", "invoice").Replace(charge), 402, `"code":"declined"`},
		{"POST", "/refunds", "r", `{"charge":"k"}`, 200, `{"charge":"k","voided":false}`},
		{"POST", "/refunds", "s", `{"charge":"k"}`, 200, `{"charge":"k","voided":false}`},
		{"POST", "/refunds", "v", `{"charge":"late"}`, 200, `{"charge":"late","voided":true}`},
		{"POST", "/refunds", "v", `{"charge":"k"}`, 422, `"code":"key_reused"`},
		{"POST", "/charges", "late", charge, 409, `"code":"voided"`},

		{"POST", "/charges", "", charge, 400, `"code":"invalid"`},
		{"POST", "/charges", strings.Repeat("k", 256), charge, 400, `"code":"invalid"`},
		{"POST", "/refunds", "", `{"charge":"k"}`, 400, `"code":"invalid"`},
		{"POST", "/refunds", "x", `{}`, 400, `"code":"invalid"`},
		{"GET", "/charges/" + strings.Repeat("k", 256), "", "", 400, `"code":"invalid"`},
		{"DELETE", "/charges/k", "", "", 405, ""},
	} {
		e.check(t, c.URL)
	}
	for _, body := range []string{
		"", "[]", charge + "x", `{"charge":"k"}`, strings.Repeat(" ", 1<<16) + charge,
		strings.Replace(charge, "1000", "0", 1), strings.Replace(charge, "1000", "9.5", 1), strings.Replace(charge, "EUR", "Euro", 1),
		strings.Replace(charge, "card", "shells", 1), strings.Replace(charge, "c-1:k-9", "", 1),
	} {
		exchange{"POST", "/charges", "malformed", body, 400, `"code":"invalid"`}.check(t, c.URL)
	}
	exchange{"POST", "/charges", "malformed", charge, 200, ""}.check(t, c.URL)
}
