package transitions

import (
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// About is what a message is for, as far as it can be read. The instance need not be
// there.
type About struct {
	Workflow    string // that takes it; "": none does
	BusinessKey string
	Instance    uuid.UUID
}

// About asks the routes what the message is for, once more: for the list of those
// that were not consumed.
func (m Message) About(routes []MessageRoute) About {
	if m.Check() != nil {
		return About{}
	}
	if p, err := PrepareMessage(m, routes, func() uuid.UUID { return uuid.Nil }); err == nil {
		return About{p.Workflow, p.BusinessKey, p.Instance}
	}
	_, c, err := m.command(routes)
	if err != nil {
		return About{}
	}
	if TextProblem(c.BusinessKey, workflow.MaxBusinessKey) != "" { // it cannot be stored
		c.BusinessKey = ""
	}
	if c.BusinessKey != "" {
		c.Instance = InstanceID(m.WithDefaults().Tenant, c.Workflow, c.BusinessKey)
	}
	return About{c.Workflow, c.BusinessKey, c.Instance}
}
