package api

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/transitions"
)

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

// operateCommand settles a command that waits for an operator.
func operateCommand(action transitions.Action) handler {
	return func(a *API, w http.ResponseWriter, r *request) error {
		in, err := readJSON[Operation](a, w, r)
		if err != nil {
			return err
		}
		if err := transitions.CheckScope(in.Scope); err != nil {
			return err
		}
		if err := transitions.CheckKey(in.Key); err != nil {
			return err
		}
		return a.operate(w, r, transitions.Command{}, transitions.Operation{
			Action: action, Reason: in.Reason, Result: in.Result, Target: transitions.CommandRef{Scope: in.Scope, Key: in.Key},
		})
	}
}

// operateInstance pauses or resumes an instance.
func operateInstance(action transitions.Action) handler {
	return func(a *API, w http.ResponseWriter, r *request) error {
		id, err := a.addressed(r)
		if err != nil {
			return err
		}
		in, err := readJSON[Reason](a, w, r)
		if err != nil {
			return err
		}
		return a.operate(w, r, transitions.Command{Instance: id}, transitions.Operation{Action: action, Reason: in.Reason})
	}
}

func (a *API) operate(w http.ResponseWriter, r *request, cmd transitions.Command, o transitions.Operation) error {
	if err := named(r.Request, &cmd, false); err != nil {
		return err
	}
	r.by(&cmd)
	receipt, err := a.engine.Operate(r.Context(), cmd, o)
	if err != nil {
		return err
	}
	return sendReceipt(w, receipt)
}
