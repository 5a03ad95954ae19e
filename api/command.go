package api

import (
	"net/http"
	"strconv"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// create starts an instance: POST /v1/workflows/{workflow}/{transition}.
func (a *API) create(w http.ResponseWriter, r *request) error {
	return a.command(w, r, transitions.Command{Workflow: r.text("workflow")})
}

// transition changes an instance: POST /v1/instances/{id}/{transition}.
func (a *API) transition(w http.ResponseWriter, r *request) error {
	return a.command(w, r, transitions.Command{Instance: r.id("id")})
}

// transitionByKey changes the instance that has a business key:
// POST /v1/workflows/{workflow}/keys/{business_key}/{transition}.
func (a *API) transitionByKey(w http.ResponseWriter, r *request) error {
	return a.command(w, r, transitions.Command{Workflow: r.text("workflow"), BusinessKey: r.text("business_key")})
}

// command completes a command from the request, submits it and answers.
func (a *API) command(w http.ResponseWriter, r *request, cmd transitions.Command) (err error) {
	dryRun := r.boolean("dry_run")
	if err := fromHeaders(r.Request, &cmd, dryRun); err != nil {
		return err
	}
	if cmd.Payload, err = a.body(w, r); err != nil {
		return err
	}
	cmd.Transition = r.text("transition")
	r.by(&cmd)
	if err := a.admit(w, cmd.Tenant, 1); err != nil {
		return err
	}
	if dryRun {
		return a.dryRun(w, r, cmd)
	}
	receipt, err := a.engine.Submit(r.Context(), cmd)
	if err != nil {
		return err
	}
	a.settle(w, r, &receipt)
	return sendReceipt(w, receipt)
}

// by says whose command it is.
func (r *request) by(cmd *transitions.Command) {
	cmd.Tenant, cmd.Actor, cmd.Roles = r.tenant(), r.caller.Actor, r.caller.Roles
}

// fromHeaders reads what the headers say about a command. A dry run needs no
// key: nothing is claimed.
func fromHeaders(r *http.Request, cmd *transitions.Command, dryRun bool) error {
	if err := named(r, cmd, dryRun); err != nil {
		return err
	}
	var err error
	if cmd.NotBefore, err = notBefore(r); err != nil {
		return err
	}
	if cmd.IfVersion, err = ifMatch(r); err != nil {
		return err
	}
	return keepFor(r, cmd)
}

// named reads the headers that name a command.
func named(r *http.Request, cmd *transitions.Command, dryRun bool) error {
	key, given, err := keyHeader(r, headerKey, workflow.KeyInvalid)
	if err != nil {
		return err
	}
	if given || !dryRun {
		if err := transitions.CheckKey(key); err != nil {
			return err
		}
	}
	scope, given, err := keyHeader(r, headerScope, workflow.ScopeInvalid)
	if err != nil {
		return err
	}
	if given {
		if err := transitions.CheckScope(scope); err != nil {
			return err
		}
	}
	cmd.Key, cmd.Scope = key, scope
	return nil
}

func (a *API) dryRun(w http.ResponseWriter, r *request, cmd transitions.Command) error {
	receipt, err := a.engine.DryRun(r.Context(), cmd)
	if err != nil {
		return err
	}
	body, err := bodyOf(receipt)
	if err != nil {
		return err
	}
	w.Header().Set(headerDryRun, "true")
	send(w, receipt.Status, mediaOf(receipt), body)
	return nil
}

// bodyOf is the body of the answer: the stored bytes, or how the command stands
// while it is in flight.
func bodyOf(receipt transitions.Receipt) ([]byte, error) {
	if receipt.InFlight() {
		return render(statusOf(receipt.Record))
	}
	return receipt.Body, nil
}

// sendReceipt answers with a command's end, or with how it stands.
func sendReceipt(w http.ResponseWriter, receipt transitions.Receipt) error {
	body, err := bodyOf(receipt)
	if err != nil {
		return err
	}
	h := w.Header()
	if receipt.Replayed {
		h.Set(headerReplayed, "true")
	}
	if receipt.Status == http.StatusCreated {
		h.Set("Location", "/v1/instances/"+receipt.Instance.String())
	}
	if receipt.Version > 0 {
		h.Set("ETag", versionTag(receipt.Version))
	}
	if receipt.Position > 0 {
		h.Set(headerPosition, strconv.FormatInt(receipt.Position, 10))
	}
	if receipt.InFlight() {
		pointTo(h, receipt.Record)
	}
	send(w, receipt.Status, mediaOf(receipt), body)
	return nil
}

func mediaOf(receipt transitions.Receipt) string {
	if receipt.Refused() {
		return mediaProblem
	}
	return mediaJSON
}
