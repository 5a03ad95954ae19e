package provider_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/examples/order/provider"
)

// Only the provider decides. A proxy that knows no such path does not say that
// nothing was charged.
func TestStrangersAnswersAreNotFinal(t *testing.T) {
	for _, answer := range []struct {
		status int
		body   string
	}{
		{404, "<h1>Not Found</h1>"}, {403, `{"error":"who are you?"}`}, {429, ""}, {502, "Bad Gateway"}, {503, `{"code":""}`},
		{200, "<h1>Welcome</h1>"}, {204, ""}, {402, `{"code":5}`},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(answer.status)
			_, _ = io.WriteString(w, answer.body)
		}))
		c := provider.Client{URL: server.URL}
		_, err := c.Charge(t.Context(), "k", books)
		wantRetryable(t, err)
		wantRetryable(t, c.Refund(t.Context(), "k"))
		receipt, err := c.Charged(t.Context(), "k")
		wantRetryable(t, err)
		assert.Nilf(t, receipt, "%d %s was taken for the receipt", answer.status, answer.body)
		server.Close()
	}
}

// A charge whose answer is lost is repeated with its key.
func Example() {
	p := provider.New()
	p.Misbehave(func(r provider.Request) provider.Behaviour { return provider.Behaviour{Lose: r.N == 1} })
	server := httptest.NewServer(p)
	defer server.Close()

	c := provider.Client{URL: server.URL}
	charge := provider.Charge{Amount: 129900, Currency: "EUR", Method: "card", Reference: "c-1:k-9"}
	for try := 1; ; try++ {
		receipt, err := c.Charge(context.Background(), "a-key-of-its-own", charge)
		if err == nil {
			fmt.Println("try", try, "charged", receipt.Amount, receipt.Currency)
			break
		}
		fmt.Println("try", try, "final:", provider.IsFinal(err))
	}
	entry := p.Ledger()["a-key-of-its-own"]
	fmt.Println(entry.Requests, "requests,", entry.Charges, "charge")

	// Output:
	// try 1 final: false
	// try 2 charged 129900 EUR
	// 2 requests, 1 charge
}
