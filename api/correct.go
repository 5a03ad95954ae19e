package api

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Correction is how an operator corrects an instance.
type Correction struct {
	State  workflow.State `json:"state,omitempty"` // in which it goes on; without it, that of before
	Data   jsontext.Value `json:"data,omitempty"`  // the members that change; null is the zero value
	Reason string         `json:"reason"`          // required
}

// correctInstance puts an instance into another state, or corrects its data.
func (a *API) correctInstance(w http.ResponseWriter, r *request) error {
	id, err := a.addressed(r)
	if err != nil {
		return err
	}
	in, err := readJSON[Correction](a, w, r)
	if err != nil {
		return err
	}
	o := transitions.Operation{Action: transitions.Correct, Reason: in.Reason, State: in.State, Data: in.Data}
	return a.operateOrTry(w, r, transitions.Command{Instance: id}, o)
}

// operateOrTry does what an operator asks of an instance, or says what would come of it.
func (a *API) operateOrTry(w http.ResponseWriter, r *request, cmd transitions.Command, o transitions.Operation) (err error) {
	if cmd.IfVersion, err = ifMatch(r.Request); err != nil {
		return err
	}
	if !r.boolean(dryRun.Name) {
		return a.operate(w, r, cmd, o)
	}
	if err := named(r.Request, &cmd, true); err != nil {
		return err
	}
	if err := a.by(r, &cmd); err != nil {
		return err
	}
	receipt, _, err := a.engine.Admin().DryRunOperation(r.Context(), cmd, o)
	if err != nil {
		return err
	}
	w.Header().Set(headerDryRun, "true")
	send(w, receipt.Status, mediaOf(receipt), receipt.Body)
	return nil
}
