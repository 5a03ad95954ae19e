package api

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pawlhq/pawl/transitions"
)

// settle waits for the ends of those commands that are in flight, for as long as
// the caller prefers to wait ("Prefer: wait=N"), and puts their answers in the
// place of what they have. What is still in flight when the time is over, or
// when the node stops, is then as it stands. All of them are accepted already:
// whatever goes wrong here is no error of theirs.
func (a *API) settle(w http.ResponseWriter, r *request, receipts ...*transitions.Receipt) {
	open := inFlight(receipts)
	if len(open) == 0 {
		return
	}
	var applied []string
	if wait := preferredWait(r.with(headerPrefer)); wait > 0 && a.waitForEnds(r.Context(), wait, r.tenant(), open) {
		applied = append(applied, "wait")
	}
	if len(inFlight(open)) > 0 && prefersAsync(r.Request) {
		applied = append(applied, "respond-async")
	}
	if applied != nil {
		w.Header().Set(headerApplied, strings.Join(applied, ", "))
	}
}

// waitForEnds reports whether it waited: not on a node that stops.
func (a *API) waitForEnds(ctx context.Context, wait time.Duration, tenant string, open []*transitions.Receipt) bool {
	limited, done, err := a.streams.Wait(ctx, wait)
	if err != nil {
		return false
	}
	defer done()
	var all sync.WaitGroup
	for _, receipt := range open {
		all.Go(func() {
			final, err := a.engine.Await(limited, tenant, receipt.Record.Scope, receipt.Record.Key)
			switch {
			case err == nil:
				final.Replayed = receipt.Replayed
				*receipt = final
			case limited.Err() == nil:
				_ = a.judged(ctx, err)
			}
		})
	}
	all.Wait()
	for _, receipt := range inFlight(open) {
		if ctx.Err() != nil {
			break // there is nobody to tell
		}
		if err := a.refresh(ctx, tenant, receipt); err != nil {
			_ = a.judged(ctx, err)
		}
	}
	return true
}

// refresh makes the receipt of a command in flight say how it stands now.
func (a *API) refresh(ctx context.Context, tenant string, receipt *transitions.Receipt) error {
	record, err := a.engine.Command(ctx, tenant, receipt.Record.Scope, receipt.Record.Key)
	if err != nil {
		return err
	}
	now := record.Receipt()
	now.Replayed = receipt.Replayed
	*receipt = now
	return nil
}

func inFlight(receipts []*transitions.Receipt) []*transitions.Receipt {
	var open []*transitions.Receipt
	for _, receipt := range receipts {
		if receipt.InFlight() {
			open = append(open, receipt)
		}
	}
	return open
}
