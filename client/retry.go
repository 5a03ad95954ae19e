package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// failed describes a failed attempt.
type failed struct {
	err       *workflow.Error
	again     bool          // another attempt may succeed
	elsewhere bool          // preferably at another address
	ambiguous bool          // the request may have been executed
	wait      time.Duration // of Retry-After
}

// trial counts the attempts of a call.
type trial struct {
	client    *Client
	rounds    int  // failed attempts, each at all addresses if that may help
	hops      int  // addresses tried in this round
	endless   bool // a subscription that has received something
	renewed   bool // the credential was rejected and renewed
	ambiguous bool // an attempt may have executed the request
}

// again reports whether to make another attempt, after the delay that it waits for.
func (t *trial) again(ctx context.Context, at int64, f *failed) bool {
	t.ambiguous = t.ambiguous || f.ambiguous
	switch {
	case ctx.Err() != nil:
		return false
	case f.err.Code == workflow.Unauthorized && t.client.cfg.TokenSource != nil && !t.renewed:
		t.renewed = true
		return true
	case !f.again:
		return false
	case f.elsewhere:
		// Switch to the next address, unless another call has done so.
		t.client.at.CompareAndSwap(at, (at+1)%int64(len(t.client.urls)))
		if t.hops++; t.hops < len(t.client.urls) {
			return true
		}
	}
	t.hops = 0
	retry := &t.client.cfg.Retry
	if t.rounds++; t.rounds >= retry.Attempts && !t.endless {
		return false
	}
	wait := min(f.wait, retry.MaxAfter) + t.client.backoff(t.rounds)
	t.client.notify(f.err, wait)
	return backoff.Sleep(ctx, wait)
}

// resetFailures resets the failures of a subscription that has received something.
func (t *trial) resetFailures() {
	if t.rounds > 0 {
		t.client.notify(nil, 0)
	}
	*t = trial{client: t.client, endless: true}
}

// error returns the error for the caller after the last attempt.
func (f *failed) error(ctx context.Context) *workflow.Error {
	if ctx.Err() == nil {
		return f.err
	}
	return &workflow.Error{Code: workflow.TimedOut, Message: "the context ended before the response",
		Cause: errors.Join(context.Cause(ctx), f.err)}
}

// error returns the error for the caller of a command after the last attempt. A refusal does not settle an earlier attempt with an unknown
// outcome, unless it is the final result of the key.
func (t *trial) error(ctx context.Context, f *failed) *workflow.Error {
	if !t.ambiguous || f.ambiguous || f.err.Code.Info().Final {
		return f.error(ctx)
	}
	return &workflow.Error{Code: workflow.TimedOut, Message: "an attempt had no response, and a later one was refused", Cause: f.error(ctx)}
}

// noResponse returns a failed attempt whose outcome is unknown.
func noResponse(cause error) *failed {
	return &failed{again: true, elsewhere: true, ambiguous: true,
		err: &workflow.Error{Code: workflow.TimedOut, Message: "no response", Cause: cause}}
}

// refused parses a problem document.
func refused(a *answer) *failed {
	var p transitions.Problem
	if err := json.Unmarshal(a.body, &p, reading); err != nil || p.Code == "" {
		return foreign(a)
	}
	f := failedWith(&p)
	f.wait = retryAfter(a.header)
	return f
}

// failedWith returns the consequence of a problem for the next attempt.
func failedWith(p *transitions.Problem) *failed {
	info := p.Code.Info()
	known := info.Code == p.Code // other versions of Pawl have other codes
	return &failed{err: p.Err(), again: known && info.Retry || !known && mayPass(p.Status),
		elsewhere: p.Code == workflow.ShuttingDown || p.Code == workflow.Unavailable || p.Code == workflow.NotOnThisNode,
		ambiguous: p.Code == workflow.Unavailable || p.Code == workflow.TimedOut}
}

func mayPass(status int) bool {
	return status == http.StatusTooManyRequests || status >= 500
}

// foreign returns the failure for a response that is not Pawl's, but a proxy's or another server's.
func foreign(a *answer) *failed {
	f := &failed{again: mayPass(a.status), elsewhere: a.status >= 500, ambiguous: a.status >= 500, wait: retryAfter(a.header)}
	code := workflow.InvalidRequest
	switch {
	case f.again:
		code = workflow.TimedOut
	case a.status == http.StatusUnauthorized:
		code = workflow.Unauthorized
	case a.status == http.StatusForbidden:
		code = workflow.Forbidden
	case a.status == http.StatusNotFound:
		code = workflow.NotFound
	}
	f.err = &workflow.Error{Code: code, Message: fmt.Sprintf("the address responded %d without a problem document", a.status),
		Cause: fmt.Errorf("%.200q", a.body)}
	return f
}

// retryAfter parses both forms of the header (RFC 9110, section 10.2.3).
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
