package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/examples/order/provider"
)

// hold keeps requests at the provider, which has taken but not yet done them.
type hold struct {
	came    chan struct{} // closed when the first has come
	arrive  func()        // closes it
	gone    chan struct{} // closed when they may go on
	release func()        // closes it
}

func newHold() *hold {
	h := &hold{came: make(chan struct{}), gone: make(chan struct{})}
	h.arrive = sync.OnceFunc(func() { close(h.came) })
	h.release = sync.OnceFunc(func() { close(h.gone) })
	return h
}

// wait is for the provider's rule: it holds the request that it is asked about.
func (h *hold) wait() {
	h.arrive()
	<-h.gone
}

// await returns when a request is held.
func (h *hold) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-h.came:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("nothing came to the provider: %w", ctx.Err())
	}
}

// books are what the ledger must say of the payment with a reference.
func books(reference string, charges, refunds int, says string) check {
	return check{says, func(_ *story, a answer) error {
		var ledger map[string]provider.Entry
		if err := json.Unmarshal(a.body, &ledger); err != nil {
			return fmt.Errorf("the ledger cannot be read: %w", err)
		}
		keys := 0
		for _, e := range ledger {
			if e.Reference != reference {
				continue
			}
			keys++
			if e.Charges != charges || e.Refunds != refunds {
				return fmt.Errorf("%s was charged %d times and refunded %d times, and should be %d and %d", reference, e.Charges, e.Refunds, charges, refunds)
			}
		}
		if keys != 1 {
			return fmt.Errorf("%s was asked to be paid with %d keys, and should be with one", reference, keys)
		}
		return nil
	}}
}

// ledger asks the provider itself what has happened.
func (s *story) ledger() request { return get("/ledger").to(s.bank.URL()) }

// charged returns when the provider has charged for the reference.
func (s *story) charged(ctx context.Context, reference string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	often := time.NewTicker(time.Millisecond)
	defer often.Stop()
	for {
		for _, e := range s.bank.Ledger() {
			if e.Reference == reference && e.Charges > 0 {
				return nil
			}
		}
		select {
		case <-often.C:
		case <-ctx.Done():
			return fmt.Errorf("the provider did not charge: %w", ctx.Err())
		}
	}
}
