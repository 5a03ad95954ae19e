package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

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

// readActor reads the actor that a caller with a credential names; one without has named himself by it.
func (r *request) readActor() (err error) {
	if kind := r.caller.Proof.Kind; kind == "" || kind == auth.Loopback || len(r.Header[headerActor]) == 0 {
		return nil
	}
	if !r.route.ActsAs {
		return workflow.Errorf(workflow.InvalidRequest, "the header %s means nothing here: the credential says who calls", headerActor)
	}
	r.actAs, err = namedBy(r.Request, headerActor, "", transitions.MaxActor)
	return err
}

// by sets the actor of a command: the caller, or the actor that the caller or the request names. Naming another actor requires a grant, and
// so does an import. Errors: those of may and mayOccupy.
func (a *API) by(r *request, cmd *transitions.Command) error {
	c, as := &r.caller, cmd.Actor
	if as == "" {
		as = r.actAs
	}
	cmd.Tenant, cmd.Actor, cmd.Roles, cmd.Proof, cmd.Credential = r.tenant(), c.Actor, c.Roles, "", c.Credential
	if kind := c.Proof.Kind; kind != "" && kind != auth.Loopback {
		cmd.Proof = c.Proof.String()
	}
	if end := c.Credential.Until; !a.cfg.KeepScheduled && !end.IsZero() && !cmd.NotBefore.Before(end) {
		return c.Denied("the command is for " + cmd.NotBefore.UTC().Format(time.RFC3339) +
			", and the credential ends before that: send it with one that lasts longer")
	}
	if !cmd.HappenedAt.IsZero() {
		if err := a.may(r.Context(), c, Import, aboutCommand(cmd)); err != nil {
			return err
		}
	}
	if err := a.mayOccupy(r.Context(), c, cmd); err != nil {
		return err
	}
	if as == "" || as == c.Actor {
		return nil
	}
	if err := a.may(r.Context(), c, ActAs, aboutCommand(cmd)); err != nil {
		return err
	}
	if cmd.Actor = as; cmd.Proof != "" {
		cmd.Proof += " by " + c.Actor
	}
	return nil
}

// aboutCommand is what a command is about.
func aboutCommand(cmd *transitions.Command) auth.Target {
	return auth.Target{Workflow: cmd.Workflow, Transition: cmd.Transition, Instance: cmd.Instance, BusinessKey: cmd.BusinessKey}
}

// mayOccupy refuses a scope or a retention period beyond the caller's grants. Keys in a scope block each other, so the default scopes of
// other commands are not permitted, and a caller that may not submit everything may choose only scopes of its own: the name of its actor, a
// colon and any text. The retention of a key is for callers that may submit everything of the workflow. Errors: ScopeInvalid, Forbidden,
// those of may.
func (a *API) mayOccupy(ctx context.Context, c *Caller, cmd *transitions.Command) error {
	if cmd.Scope != "" && !isDefaultScope(cmd) {
		name, _, _ := strings.Cut(cmd.Scope, ":")
		_, err := a.engine.Read().Workflow(name, 0)
		switch {
		case err == nil:
			return workflow.Errorf(workflow.ScopeInvalid, "scopes that begin with %q are the default scopes of other commands: leave the scope "+
				"out, or choose one that begins with no workflow's name", name+":")
		case !c.May(Submit, auth.Target{}) && !strings.HasPrefix(cmd.Scope, c.Actor+":"):
			return workflow.Errorf(workflow.Forbidden, "a scope of one's own choice takes the grant %q, or begins with the name of the actor and "+
				"a colon: %q", Submit, c.Actor+":")
		}
	}
	if cmd.Replay == 0 && cmd.Tombstone == 0 {
		return nil
	}
	whole := auth.Target{Workflow: cmd.Workflow}
	if whole.Workflow == "" && !c.May(Submit, whole) {
		inst, err := a.engine.Read().Instance(ctx, cmd.Tenant, cmd.Instance)
		if err != nil {
			return err
		}
		whole.Workflow = inst.Workflow
	}
	if !c.May(Submit, whole) {
		return workflow.Errorf(workflow.Forbidden, "to choose how long a key is kept takes the grant %q for the whole workflow", Submit)
	}
	return nil
}

// isDefaultScope reports whether a command has the scope that it would have without one.
func isDefaultScope(cmd *transitions.Command) bool {
	instance := cmd.Instance
	if instance == uuid.Nil && cmd.BusinessKey != "" {
		instance = transitions.InstanceID(cmd.Tenant, cmd.Workflow, cmd.BusinessKey)
	}
	name, rest, _ := strings.Cut(cmd.Scope, ":")
	return (cmd.Workflow == "" || name == cmd.Workflow) &&
		(instance != uuid.Nil && rest == instance.String() || cmd.Instance == uuid.Nil && rest == cmd.Transition)
}
