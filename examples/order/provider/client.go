package provider

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"
)

// Client asks a provider over HTTP. It is safe for concurrent use. It sends each
// request once: whether and when to send it again is for the caller to say. An
// error that is not final, see [IsFinal], leaves open what has happened.
type Client struct {
	// URL is where the provider is, such as "http://127.0.0.1:8090".
	URL string
	// HTTP is what to send requests with. Default: http.DefaultClient, so that a
	// request is bounded by its ctx alone.
	HTTP *http.Client
}

// Charge takes the money, once per key.
func (c *Client) Charge(ctx context.Context, key string, charge Charge) (Receipt, error) {
	var receipt Receipt
	err := c.post(ctx, "/charges", key, charge, &receipt)
	return receipt, err
}

// Charged returns the receipt of a charge, or nil if none with this key has happened. A refunded charge has happened.
func (c *Client) Charged(ctx context.Context, key string) (*Receipt, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/charges/"+url.PathEscape(key), nil)
	if err != nil {
		return nil, fmt.Errorf("payment provider: %w", err)
	}
	var receipt Receipt
	err = c.do(r, &receipt)
	if e, ok := errors.AsType[*Error](err); ok && e.Code == NotCharged {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &receipt, nil
}

// Refund gives the money of the charge with this key back, once. If the charge
// has not happened, it cannot happen any more.
func (c *Client) Refund(ctx context.Context, key string) error {
	return c.post(ctx, "/refunds", key, refundOf{Charge: key}, &refunded{})
}

func (c *Client) post(ctx context.Context, path, key string, body, result any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("payment provider: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+path, bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("payment provider: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	r.GetBody = nil // or net/http, seeing the key, would send it again by itself
	return c.do(r, result)
}

// do sends a request and reads the answer into result.
func (c *Client) do(r *http.Request, result any) (err error) {
	answer, err := cmp.Or(c.HTTP, http.DefaultClient).Do(r)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // customers may read this, and the address is none of theirs
		}
		return fmt.Errorf("payment provider: %w", err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxBody))
	if err != nil {
		return fmt.Errorf("payment provider: read the answer: %w", err)
	}
	if answer.StatusCode == http.StatusOK {
		if err := json.Unmarshal(raw, result); err != nil {
			return fmt.Errorf("payment provider: read the answer: %w", err)
		}
		return nil
	}
	refused := &Error{Status: answer.StatusCode}
	// Whatever stands between here and the provider has words of its own.
	if json.Unmarshal(raw, refused) != nil || refused.Code == "" {
		refused.Code, refused.Message = Unavailable, answer.Status
	}
	return refused
}
