package api

import (
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// maxOperation is the longest body of an operation in bytes, beside a result.
const maxOperation = 16 << 10

// Operation is what an operator says about a stuck command.
type Operation struct {
	Scope  string         `json:"scope"`
	Key    string         `json:"key"`
	Reason string         `json:"reason,omitempty"`
	Result jsontext.Value `json:"result,omitempty"` // of resolve: what the activity would have returned
}

// Reason is why an operator pauses or resumes.
type Reason struct {
	Reason string `json:"reason,omitempty"`
}

// operateCommand settles a command that waits for a person:
// POST /v1/ops/commands/{action}.
func (a *API) operateCommand(w http.ResponseWriter, r *http.Request, c Caller) error {
	action := transitions.Action(r.PathValue("action"))
	switch action {
	case transitions.Retry, transitions.Resolve, transitions.Abandon:
	default:
		return errNothingHere
	}
	cmd, err := operationOf(r, c)
	if err != nil {
		return err
	}
	in, err := readJSON[Operation](w, r, a.cfg.Limits.Body+maxOperation)
	if err != nil {
		return err
	}
	if err := transitions.CheckScope(in.Scope); err != nil {
		return err
	}
	if err := transitions.CheckKey(in.Key); err != nil {
		return err
	}
	return a.operate(w, r, cmd, transitions.Operation{
		Action: action, Reason: in.Reason, Result: in.Result, Target: transitions.CommandRef{Scope: in.Scope, Key: in.Key},
	})
}

// operateInstance pauses or resumes an instance:
// POST /v1/ops/instances/{id}/{action}, or by the business key.
func (a *API) operateInstance(w http.ResponseWriter, r *http.Request, c Caller) error {
	action := transitions.Action(r.PathValue("action"))
	if action != transitions.Pause && action != transitions.Resume {
		return errNothingHere
	}
	cmd, err := operationOf(r, c)
	if err != nil {
		return err
	}
	if cmd.Instance, err = a.addressed(r, c); err != nil {
		return err
	}
	in, err := readJSON[Reason](w, r, maxOperation)
	if err != nil {
		return err
	}
	return a.operate(w, r, cmd, transitions.Operation{Action: action, Reason: in.Reason})
}

// operationOf reads what path and headers say about an operation.
func operationOf(r *http.Request, c Caller) (transitions.Command, error) {
	cmd := transitions.Command{Tenant: c.Tenant, Actor: c.Actor, Roles: c.Roles}
	if _, err := queryOf(r); err != nil {
		return cmd, err
	}
	if err := unwanted(r, ofCommands...); err != nil {
		return cmd, err
	}
	return cmd, named(r, &cmd, false)
}

func (a *API) operate(w http.ResponseWriter, r *http.Request, cmd transitions.Command, o transitions.Operation) error {
	receipt, err := a.engine.Operate(r.Context(), cmd, o)
	if err != nil {
		return err
	}
	return sendReceipt(w, receipt)
}

// readJSON reads a body that is a JSON object. Without one it is empty, as for a
// command.
func readJSON[T any](w http.ResponseWriter, r *http.Request, limit int64) (T, error) {
	var v T
	if _, err := contentType(r, mediaJSON); err != nil && !untyped(r) {
		return v, err
	}
	body, err := readBody(w, r, limit)
	if err != nil || len(body) == 0 {
		return v, err
	}
	if jsontext.Value(body).Kind() != '{' {
		return v, workflow.Errorf(workflow.InvalidRequest, "the body is not a JSON object")
	}
	if err := json.Unmarshal(body, &v, json.RejectUnknownMembers(true)); err != nil {
		return v, &workflow.Error{Code: workflow.InvalidRequest, Message: "the body is not well-formed",
			Fields: []workflow.FieldError{jsonProblem(err)}}
	}
	return v, nil
}
