package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/pawlhq/pawl/api/internal/stream"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/ticket"
)

// term ends a stream or a wait when its caller's credential does. It is for one goroutine.
type term struct {
	cancel  context.CancelCauseFunc
	over    chan struct{} // closed when the credential counts no more; nil: it does not end
	running sync.WaitGroup
}

// bounded lets the request end with the caller's credential, until the term is done.
func (r *request) bounded() *term {
	ctx, t := r.term()
	r.Request = r.WithContext(ctx)
	return t
}

// term is a context that ends with the caller's credential, until the term is done.
func (r *request) term() (context.Context, *term) {
	ctx, cancel := context.WithCancelCause(r.Context())
	t := &term{cancel: cancel}
	t.lasts(&r.caller)
	return ctx, t
}

// done ends the term and the request.
func (t *term) done() {
	t.forget()
	t.cancel(nil)
}

// forget lets no credential count any more.
func (t *term) forget() {
	if t.over != nil {
		close(t.over)
		t.over = nil
	}
	t.running.Wait()
}

// lasts lets a credential count from now on, and no other one.
func (t *term) lasts(c *Caller) {
	t.forget()
	if c.Until.IsZero() && c.Ended == nil {
		return
	}
	over, ended, until := make(chan struct{}), c.Ended, c.Until
	t.over = over
	t.running.Go(func() {
		var end <-chan time.Time
		if !until.IsZero() {
			timer := time.NewTimer(time.Until(until))
			defer timer.Stop()
			end = timer.C
		}
		select {
		case <-end:
		case <-ended:
		case <-over:
			return
		}
		t.cancel(stream.CredentialEnded)
	})
}

// renew replaces the credential of an open WebSocket with one of the same actor. Errors: Unauthorized, Forbidden, Unavailable.
func (a *API) renew(ctx context.Context, r *request, t *term, credential string) (until time.Time, err error) {
	if a.local && !(a.cfg.Tickets != nil && ticket.Is(credential)) {
		return until, auth.Refuse(auth.Malformed, "authentication is disabled; only tickets are accepted")
	}
	c, err := a.callerOf(bearing(r.Request.WithContext(ctx), credential))
	if err != nil {
		return until, err
	}
	if err := mayAny(&c, r.route.Grant); err != nil {
		return until, err
	}
	if c.Tenant != r.caller.Tenant || c.Actor != r.caller.Actor {
		return until, c.Denied("the credential belongs to another actor: open another connection with it")
	}
	r.caller = c
	t.lasts(&c)
	return c.Until.UTC(), nil
}

// stillHolds refuses an answer that arrived while the caller waited, if its credential has ended meanwhile. h is the header of the answer.
func (r *request) stillHolds(h http.Header) error {
	c := &r.caller
	over := !c.Until.IsZero() && !time.Now().Before(c.Until)
	select {
	case <-c.Ended:
		over = true
	default:
	}
	if !over {
		return nil
	}
	err := auth.Refuse(auth.Expired, "the credential has ended while the request waited; ask again with another one")
	challenge(h, err)
	return err
}
