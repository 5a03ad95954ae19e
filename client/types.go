package client

import "github.com/pawlhq/pawl/api/wire"

// Types of responses, as defined by package wire.
type (
	Instance      = wire.Instance
	InstanceView  = wire.InstanceView
	Child         = wire.Child
	Options       = wire.Options
	Entry         = wire.Entry
	CommandStatus = wire.CommandStatus
	Filter        = wire.Filter
	Me            = wire.Me
	TicketRequest = wire.TicketRequest
	Ticket        = wire.Ticket

	WorkflowSummary = wire.WorkflowSummary
)
