package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/internal/kernel/pause"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// failed is why an attempt came to nothing.
type failed struct {
	err       *workflow.Error
	again     bool          // another attempt may succeed
	elsewhere bool          // rather at another address than at this one
	unsure    bool          // what was asked for may have been done
	wait      time.Duration // and not earlier; of Retry-After
}

// trial counts the attempts of one call.
type trial struct {
	client  *Client
	rounds  int  // attempts that have failed, at every address where that may help
	hops    int  // addresses of this round that were left
	endless bool // it is a subscription of which something has come
	renewed bool // the credential was refused, and its source asked again
	unsure  bool // an attempt may have done what was asked for
}

// again reports whether there is to be another attempt, after the pause that it takes.
func (t *trial) again(ctx context.Context, at int64, f *failed) bool {
	t.unsure = t.unsure || f.unsure
	switch {
	case ctx.Err() != nil:
		return false
	case f.err.Code == workflow.Unauthorized && t.client.cfg.TokenSource != nil && !t.renewed:
		t.renewed = true
		return true
	case !f.again:
		return false
	case f.elsewhere:
		t.client.leave(at)
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
	return pause.For(ctx, wait)
}

// goesOn is a subscription of which something has come: what has failed before counts no more.
func (t *trial) goesOn() {
	if t.rounds > 0 {
		t.client.notify(nil, 0)
	}
	*t = trial{client: t.client, endless: true}
}

// err is what the caller is told after the last attempt.
func (f *failed) error(ctx context.Context) *workflow.Error {
	if ctx.Err() == nil {
		return f.err
	}
	return &workflow.Error{Code: workflow.TimedOut, Message: "the call was ended before its answer",
		Cause: errors.Join(context.Cause(ctx), f.err)}
}

// error is what the caller of a command is told after the last attempt. That it was refused says nothing of an earlier attempt that had
// no answer, unless the refusal is the key's answer for good.
func (t *trial) error(ctx context.Context, f *failed) *workflow.Error {
	if !t.unsure || f.unsure || f.err.Code.Info().Final {
		return f.error(ctx)
	}
	return &workflow.Error{Code: workflow.TimedOut, Message: "an attempt had no answer, and a later one was refused", Cause: f.error(ctx)}
}

// unanswered is an attempt after which nobody knows what was done.
func unanswered(cause error) *failed {
	return &failed{again: true, elsewhere: true, unsure: true,
		err: &workflow.Error{Code: workflow.TimedOut, Message: "there was no answer", Cause: cause}}
}

// refused reads a problem document.
func refused(a *answer) *failed {
	var p transitions.Problem
	if err := json.Unmarshal(a.body, &p, reading); err != nil || p.Code == "" {
		return foreign(a)
	}
	f := failedWith(&p)
	f.wait = retryAfter(a.header)
	return f
}

// failedWith is what a problem means for the next attempt.
func failedWith(p *transitions.Problem) *failed {
	info := p.Code.Info()
	known := info.Code == p.Code // another version of Pawl has others
	return &failed{err: p.Err(), again: known && info.Retry || !known && mayPass(p.Status),
		elsewhere: p.Code == workflow.ShuttingDown || p.Code == workflow.Unavailable || p.Code == workflow.NotOnThisNode,
		unsure:    p.Code == workflow.Unavailable || p.Code == workflow.TimedOut}
}

func mayPass(status int) bool {
	return status == http.StatusTooManyRequests || status >= 500
}

// foreign is an answer that Pawl does not give: of something in between, or of another server.
func foreign(a *answer) *failed {
	f := &failed{again: mayPass(a.status), elsewhere: a.status >= 500, unsure: a.status >= 500, wait: retryAfter(a.header)}
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
	f.err = &workflow.Error{Code: code, Message: fmt.Sprintf("the address answers %d, without a problem document", a.status),
		Cause: fmt.Errorf("%.200q", a.body)}
	return f
}

// retryAfter reads the header, in either of its forms (RFC 9110, section 10.2.3).
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
