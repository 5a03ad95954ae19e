package api

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// create starts an instance: POST /v1/workflows/{workflow}/{transition}.
func (a *API) create(w http.ResponseWriter, r *http.Request, c Caller) error {
	name, err := pathText(r, "workflow")
	if err != nil {
		return err
	}
	return a.command(w, r, c, transitions.Command{Workflow: name})
}

// transition changes an instance: POST /v1/instances/{id}/{transition}.
func (a *API) transition(w http.ResponseWriter, r *http.Request, c Caller) error {
	id, err := pathID(r)
	if err != nil {
		return err
	}
	return a.command(w, r, c, transitions.Command{Instance: id})
}

// transitionByKey changes the instance that has a business key:
// POST /v1/workflows/{workflow}/keys/{business_key}/{transition}.
func (a *API) transitionByKey(w http.ResponseWriter, r *http.Request, c Caller) error {
	name, err := pathText(r, "workflow")
	if err != nil {
		return err
	}
	key, err := pathText(r, "business_key")
	if err != nil {
		return err
	}
	return a.command(w, r, c, transitions.Command{Workflow: name, BusinessKey: key})
}

// command completes a command from the request, submits it and answers.
func (a *API) command(w http.ResponseWriter, r *http.Request, c Caller, cmd transitions.Command) error {
	q, err := queryOf(r, "dry_run")
	if err != nil {
		return err
	}
	dryRun, err := q.flag("dry_run")
	if err != nil {
		return err
	}
	if _, err := contentType(r, mediaJSON); err != nil && !untyped(r) {
		return err
	}
	if err := fromHeaders(r, &cmd, dryRun); err != nil {
		return err
	}
	if cmd.Transition, err = pathText(r, "transition"); err != nil {
		return err
	}
	if cmd.Payload, err = readBody(w, r, a.cfg.Limits.Body); err != nil {
		return err
	}
	cmd.Tenant, cmd.Actor, cmd.Roles = c.Tenant, c.Actor, c.Roles
	if err := a.admit(w, c, 1); err != nil {
		return err
	}
	if dryRun {
		return a.dryRun(w, r, cmd)
	}
	receipt, err := a.engine.Submit(r.Context(), cmd)
	if err != nil {
		return err
	}
	a.settle(w, r, c.Tenant, &receipt)
	return sendReceipt(w, receipt)
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

func (a *API) dryRun(w http.ResponseWriter, r *http.Request, cmd transitions.Command) error {
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

// bodyTime is how long a body may take to arrive. Some are read before it is known
// who sends them.
const bodyTime = time.Minute

// readBody reads a body of at most limit bytes. Error: TooLarge.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	control := http.NewResponseController(w)
	bounded := control.SetReadDeadline(time.Now().Add(bodyTime)) == nil // else it is not a connection's
	// What is announced is not yet sent: memory follows what arrives.
	body := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), 64<<10)+bytes.MinRead))
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, tooLarge(limit)
	}
	if err != nil {
		return nil, workflow.Errorf(workflow.InvalidRequest, "the body could not be read to its end")
	}
	if bounded { // the server goes on reading, to find out whether the caller leaves
		if err := control.SetReadDeadline(time.Time{}); err != nil {
			return nil, workflow.Errorf(workflow.InvalidRequest, "the connection was lost")
		}
	}
	return body.Bytes(), nil
}

func tooLarge(limit int64) error {
	return workflow.Errorf(workflow.TooLarge, "the body is larger than %d bytes", limit)
}
