package api

import (
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// DeadSelection is which dead letters an operator redrives or skips. What is not
// given selects everything; what is given must not be empty.
type DeadSelection struct {
	AllTenants bool                   `json:"all_tenants,omitempty"` // instead of the caller's alone
	Status     transitions.DeadStatus `json:"status,omitempty"`      // "" is waiting
	Workflow   *string                `json:"workflow,omitempty"`
	Type       *string                `json:"type,omitempty"`
	Instance   *string                `json:"instance,omitempty"`
	Position   *int64                 `json:"position,omitempty"` // of the caller's tenant
	Reason     string                 `json:"reason,omitempty"`
}

// filter is what is selected. A field that is empty by mistake must not select
// everything.
func (s *DeadSelection) filter(c Caller) (f transitions.DeadFilter, err error) {
	f = transitions.DeadFilter{Status: s.Status, Tenant: c.Tenant}
	if s.AllTenants {
		if err := c.operatesAll(); err != nil {
			return f, err
		}
		f.Tenant = ""
	}
	for name, field := range map[string]struct{ from, to *string }{"workflow": {s.Workflow, &f.Workflow}, "type": {s.Type, &f.Type}} {
		if field.from == nil {
			continue
		}
		if *field.to = *field.from; *field.to == "" {
			return f, workflow.Errorf(workflow.InvalidRequest, "the %s is empty", name)
		}
	}
	if s.Instance != nil {
		if f.Instance, err = parseID(*s.Instance); err != nil {
			return f, err
		}
	}
	if s.Position != nil {
		if f.Position = *s.Position; f.Position < 1 {
			return f, workflow.Errorf(workflow.InvalidRequest, "the position is not an integer from 1 on")
		}
	}
	return f, nil
}
