package api

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// forCaller returns an answer as its caller may see it. The answer to a creation whose business key is taken shows another command's
// instance. A caller who may not read that learns only that it exists. The stored answer stays as it is.
func forCaller(c *Caller, name string, receipt transitions.Receipt) (transitions.Receipt, error) {
	if receipt.Version > 0 || receipt.InFlight() || receipt.Status != http.StatusOK && receipt.Status != http.StatusConflict {
		return receipt, nil
	}
	result, err := receipt.Result()
	switch {
	case err == nil && result.Existing:
		if c.May(Read, auth.Target{Workflow: result.Workflow, Instance: result.Instance}) {
			return receipt, nil
		}
		receipt.Body, err = render(wire.Existing{Workflow: result.Workflow, Transition: result.Transition, Existing: true})
	case workflow.CodeOf(err) == workflow.AlreadyExists:
		if c.May(Read, auth.Target{Workflow: name, Instance: receipt.Instance}) {
			return receipt, nil
		}
		receipt.Body, err = transitions.ProblemOf(workflow.Errorf(workflow.AlreadyExists, "the business key belongs to another instance")).JSON(), nil
	default:
		return receipt, nil
	}
	receipt.Instance = uuid.Nil
	return receipt, err
}
