package api

import (
	"github.com/pawlhq/pawl/api/internal/parse"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/workflow"
)

// DeadSelection is which dead letters an operator redrives or skips: those of a
// workflow, a type, an instance (by its id or its business key), a position, or expressly all. What is given must
// not be empty.
type DeadSelection struct {
	All         bool               `json:"all,omitempty"`         // of the status
	AllTenants  bool               `json:"all_tenants,omitempty"` // instead of the caller's alone
	Status      inspect.DeadStatus `json:"status,omitempty"`      // "" is waiting
	Workflow    *string            `json:"workflow,omitempty"`
	Type        *string            `json:"type,omitempty"`
	Instance    *string            `json:"instance,omitempty"`
	BusinessKey *string            `json:"business_key,omitempty"` // of the caller's tenant, with workflow
	Position    *int64             `json:"position,omitempty"`     // of the caller's tenant
	Reason      string             `json:"reason,omitempty"`
}

// filter is what is selected. A field that is empty or left out by mistake must not
// select everything.
func (s *DeadSelection) filter(r *request) (f inspect.DeadFilter, err error) {
	if !s.All && s.Workflow == nil && s.Type == nil && s.Instance == nil && s.BusinessKey == nil && s.Position == nil {
		return f, workflow.Errorf(workflow.InvalidRequest,
			`say which: with "workflow", "type", "instance", "business_key" or "position", or "all": true`)
	}
	f = inspect.DeadFilter{Status: s.Status, Tenant: r.tenant()}
	if s.AllTenants {
		if err := r.caller.may(OperateAll); err != nil {
			return f, err
		}
		f.Tenant = ""
	}
	for name, field := range map[string]struct{ from, to *string }{"workflow": {s.Workflow, &f.Workflow}, "type": {s.Type, &f.Type},
		"business_key": {s.BusinessKey, &f.BusinessKey}} {
		if field.from == nil {
			continue
		}
		if *field.to = *field.from; *field.to == "" {
			return f, workflow.Errorf(workflow.InvalidRequest, "the %s is empty", spoken(name))
		}
	}
	if s.Instance != nil {
		if f.Instance, err = parse.ID(*s.Instance); err != nil {
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
