package api

import (
	"time"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

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
