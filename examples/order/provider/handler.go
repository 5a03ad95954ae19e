package provider

import (
	"errors"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"
)

const (
	maxKey  = 255     // bytes
	maxBody = 1 << 16 // bytes
)

// refundOf is the body of a request to refund.
type refundOf struct {
	Charge string `json:"charge"` // its key
}

// refunded is the answer to it.
type refunded struct {
	Charge string `json:"charge"`
	// Voided reports that there is and will be nothing to refund.
	Voided bool `json:"voided"`
}

func (p *Provider) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charges", func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		serve(p, w, r, OpCharge, key, func(c Charge) (Receipt, error) { return p.charge(key, c) })
	})
	mux.HandleFunc("GET /charges/{key}", func(w http.ResponseWriter, r *http.Request) {
		key := r.PathValue("key")
		serve(p, w, r, OpCharged, key, func(struct{}) (*Receipt, error) {
			if receipt := p.charged(key); receipt != nil {
				return receipt, nil
			}
			return nil, refusal(404, NotCharged, "no charge with this key has happened")
		})
	})
	mux.HandleFunc("POST /refunds", func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		serve(p, w, r, OpRefund, key, func(of refundOf) (refunded, error) {
			if err := checkKey(of.Charge); err != nil {
				return refunded{}, err
			}
			back, err := p.refund(key, of.Charge)
			return refunded{Charge: of.Charge, Voided: !back}, err
		})
	})
	mux.HandleFunc("GET /ledger", func(w http.ResponseWriter, _ *http.Request) { answer(w, p.Ledger(), nil) })
	return mux
}

// ServeHTTP serves the interface that the package describes.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// serve reads a request, lets happen to it what shall, and does it. The body is
// read first: only then does the server notice that a client leaves.
func serve[T, R any](p *Provider, w http.ResponseWriter, r *http.Request, op Op, key string, do func(T) (R, error)) {
	if err := checkKey(key); err != nil {
		answer(w, nil, err)
		return
	}
	var body T
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil && r.Method != http.MethodGet {
		err = json.Unmarshal(raw, &body, json.RejectUnknownMembers(true))
	}
	if err != nil {
		answer(w, nil, refusal(400, Invalid, "the body cannot be read: %v", err))
		return
	}
	b := p.treat(p.count(op, key))
	switch {
	case b.Fail:
		answer(w, nil, refusal(500, Unavailable, "nothing was done"))
		return
	case b.Hang:
		<-r.Context().Done()
		return
	}
	v, err := do(body)
	if b.Lose {
		panic(http.ErrAbortHandler) // cuts the connection
	}
	answer(w, v, err)
}

func checkKey(key string) error {
	if key == "" || len(key) > maxKey {
		return refusal(400, Invalid, "the key is not of 1 to %d bytes", maxKey)
	}
	return nil
}

// answer writes v, or the *Error that there is instead.
func answer(w http.ResponseWriter, v any, err error) {
	status := http.StatusOK
	if e, ok := errors.AsType[*Error](err); ok {
		status, v = e.Status, e
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.MarshalWrite(w, v) // a client that has left hears nothing
}
