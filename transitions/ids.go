package transitions

import (
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// UnknownBusinessKey returns the error for a business key without an instance.
func UnknownBusinessKey(workflowName, businessKey string) *workflow.Error {
	return workflow.Errorf(workflow.InstanceNotFound, "workflow %q has no instance with the business key %q", workflowName, businessKey)
}

// UnknownCommand returns the error for a scope and key without a command.
func UnknownCommand() *workflow.Error {
	return workflow.Errorf(workflow.CommandNotFound, "no command has this scope and key")
}

// InstanceID calls [workflow.InstanceID].
func InstanceID(tenant, workflowName, businessKey string) uuid.UUID {
	return workflow.InstanceID(tenant, workflowName, businessKey)
}
