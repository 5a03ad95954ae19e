package api

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Grant is what a caller needs for a request: a right to what it is about, or one of these.
type Grant = auth.Right

// What is no right. The zero value is nobody's.
const (
	Public    Grant = "public" // nothing: anybody may, and is not asked for a name
	AnyCaller Grant = "caller" // to be a caller, whatever he may do
)

// The rights, see package auth.
const (
	Read       = auth.Read
	Streaming  = auth.Stream
	Submit     = auth.Submit
	ActAs      = auth.ActAs
	Import     = auth.Import
	Operate    = auth.Operate
	OperateAll = auth.OperateAll
)

// about is what the path and the query name. A list or a stream is about what its filters confine it to.
func (r *request) about() (t auth.Target) {
	for i := range r.route.Params {
		switch p := &r.route.Params[i]; {
		case p.In == InHeader:
		case p.Kind == UUID && (p.Name == "id" || p.Name == "instance"):
			t.Instance = r.id(p.Name)
		case p.Kind != Text:
		case p.Name == "workflow":
			t.Workflow = r.text(p.Name)
		case p.Name == "transition":
			t.Transition = r.text(p.Name)
		case p.Name == "business_key":
			t.BusinessKey = r.text(p.Name)
		}
	}
	return t
}

// may refuses a caller without a grant for the target. An instance named by its id that no grant covers is answered as if it did not exist.
// Errors: Forbidden, InstanceNotFound; those of reading an instance.
func (a *API) may(ctx context.Context, c *Caller, g Grant, t auth.Target) error {
	switch {
	case g == Public || g == AnyCaller || c.May(g, t):
		return nil
	case !c.Has(g):
		return c.Lacks(g, t)
	case c.AsksForWorkflow(g, t):
		inst, err := a.engine.Read().Instance(ctx, c.Tenant, t.Instance)
		if err != nil {
			return err
		}
		named := t
		if named.Workflow = inst.Workflow; c.May(g, named) {
			return nil
		}
	}
	if t.Instance != uuid.Nil && t.Workflow == "" {
		return a.hidden(ctx, c, g, t, workflow.Errorf(workflow.InstanceNotFound, "there is no instance %s", t.Instance))
	}
	return c.Lacks(g, t)
}

// hidden answers a caller that may not know about something. It counts as a refusal.
func (a *API) hidden(ctx context.Context, c *Caller, g Grant, t auth.Target, as *workflow.Error) error {
	a.noteRefusal(ctx, c.Lacks(g, t))
	return as
}

// mayAbout is may for what is known of a command when it was read. One that the caller may not know of is
// answered as one that does not exist. Errors: CommandNotFound, KeyExpired, Forbidden.
func (a *API) mayAbout(ctx context.Context, c *Caller, g Grant, ref transitions.Ref) error {
	if c.May(g, auth.Target{}) {
		return nil
	}
	if !c.Has(g) {
		return c.Lacks(g, auth.Target{})
	}
	record, err := a.engine.Read().Command(ctx, ref)
	if err != nil && workflow.CodeOf(err) != workflow.KeyExpired {
		return err
	}
	if t := aboutRecord(&record); !c.May(g, t) {
		return a.hidden(ctx, c, g, t, transitions.UnknownCommand())
	}
	return err
}

// aboutRecord is what a command is about.
func aboutRecord(r *transitions.Record) auth.Target {
	return auth.Target{Workflow: r.Workflow, Transition: r.Transition, Instance: r.Instance}
}

// mayAny refuses a caller who has a right to nothing.
func mayAny(c *Caller, g Grant) error {
	if g == AnyCaller || c.Has(g) {
		return nil
	}
	return c.Lacks(g, auth.Target{})
}

// accepted returns which of the route's answers the caller prefers. Errors: NotAcceptable; what may says of an
// answer that takes a grant of its own.
func (r *request) accepted(may func(Grant) error) (string, error) {
	offers := r.route.media()
	media := accepted(r.Request, offers...)
	if media == "" {
		return "", workflow.Errorf(workflow.NotAcceptable, "the answer is %s", orList(offers))
	}
	i := slices.IndexFunc(r.route.Answers, func(one Answer) bool { return one.Media == media })
	if g := r.route.Answers[i].Grant; g != "" {
		return media, may(g)
	}
	return media, nil
}

// challenge says in a header how a caller would be known (RFC 6750, section 3).
func challenge(h http.Header, err error) {
	if workflow.CodeOf(err) != workflow.Unauthorized {
		return
	}
	value := `Bearer realm="pawl"`
	if refusal, is := errors.AsType[*auth.Refusal](err); is && refusal.Reason != auth.Missing {
		value += `, error="invalid_token", error_description="` + string(refusal.Reason) + `"`
	}
	h.Set(headerChallenge, value)
}

const headerChallenge = "WWW-Authenticate"

// noteRefusal counts and logs what a caller was refused, where that is what an error says. The log has
// a few lines a second of it at most.
func (a *API) noteRefusal(ctx context.Context, err error) {
	refusal, is := errors.AsType[*auth.Refusal](err)
	if !is {
		return
	}
	if a.cfg.Refused != nil {
		a.cfg.Refused(string(refusal.Reason))
	}
	if a.refusals.Allow() {
		a.log.InfoContext(ctx, "api: a caller is refused", "reason", refusal.Reason, "error", err, "tenant", refusal.Tenant,
			"actor", refusal.Actor, "proof", refusal.Proof.String())
	}
}
