package api

import (
	"net/http"

	"github.com/pawlhq/pawl/inspect"
)

// Case is the whole of one instance, as an operator wants to see it.
type Case struct {
	Instance InstanceView    `json:"instance"`
	InFlight []CommandStatus `json:"in_flight"`        // the command whose outcome takes it on, and undos
	Earlier  int64           `json:"earlier,omitzero"` // transitions before those of the timeline
	Timeline []Entry         `json:"timeline"`         // the newest ones, in order
	Chain    Verification    `json:"chain"`            // of its audit rows
}

// CaseOf is a case as the interface shows it.
func CaseOf(c *inspect.Case) Case {
	out := Case{Instance: viewOf(&c.View), InFlight: make([]CommandStatus, len(c.InFlight)), Earlier: c.Earlier,
		Timeline: make([]Entry, len(c.Timeline)), Chain: verificationOf(&c.Chain)}
	for i := range c.InFlight {
		out.InFlight[i] = statusOf(&c.InFlight[i])
	}
	for i := range c.Timeline {
		out.Timeline[i] = entryOf(&c.Timeline[i])
	}
	return out
}

// whole shows all of one instance: GET /v1/ops/instances/{id}, and
// GET /v1/ops/workflows/{workflow}/keys/{business_key}.
func (a *API) whole(w http.ResponseWriter, r *request) error {
	id, err := a.addressed(r)
	if err != nil {
		return err
	}
	found, err := a.engine.Case(r.Context(), r.tenant(), id)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, CaseOf(&found))
}
