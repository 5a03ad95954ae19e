package inspect

import (
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// MessageStatus is where a dead message stands.
type MessageStatus string

// The statuses of dead messages.
const (
	MessageWaiting   MessageStatus = "waiting"   // for an operator, or for its sender to send it again
	MessageRetried   MessageStatus = "retried"   // done after an operator asked for it, or had discarded what was done already
	MessageDiscarded MessageStatus = "discarded" // never to be done
)

// DeadMessage is a message that could not become a command, or whose command was refused.
type DeadMessage struct {
	transitions.MessageRef
	transitions.About
	Type       string
	Size       int    // of its body in bytes
	Body       []byte // nil in a list, and where it was too large to be kept; see Sent
	Status     MessageStatus
	Code       workflow.Code // of its newest failure
	Failure    string
	Deliveries int       // as far as is known
	CreatedAt  time.Time // when it first failed
	UpdatedAt  time.Time // when it failed last, or an operator changed it
	ChangedBy  string    // who had it retried, or discarded it
	Reason     string
}

// Sent returns the body as sent. Error: TooLarge if it was not stored; the message can then only be discarded.
func (d *DeadMessage) Sent() ([]byte, error) {
	if d.Size > transitions.MaxMessage {
		return nil, workflow.Errorf(workflow.TooLarge,
			"the message has %d bytes, and of more than %d the body is not kept; its sender has it", d.Size, transitions.MaxMessage)
	}
	return d.Body, nil
}

// DeadMessageFilter selects dead messages.
type DeadMessageFilter struct {
	Tenant      string
	Consumer    string        // "" is every one
	Status      MessageStatus // "" is MessageWaiting
	Workflow    string        // "" is every one
	BusinessKey string        // of the instance that it is for, with Workflow
	After       DeadMessage   // the cursor: the last of the page before, of which Consumer, CreatedAt, ID and Hash count
	Limit       int           // 1 to 1000; 0 is 100
}

// KeptMessage is a message that was stored as received.
type KeptMessage struct {
	transitions.MessageRef
	Size       int // of its body in bytes
	ReceivedAt time.Time
	KeepUntil  time.Time // the time of its deletion

	// Not in a list:
	Headers map[string][]string // of the first delivery, including the signature
	Body    []byte
}

// KeptMessageFilter selects kept messages.
type KeptMessageFilter struct {
	Tenant   string
	Consumer string      // "" means all
	ID       string      // the sender's; "" means all; requires Consumer
	After    KeptMessage // the last message of the previous page; Consumer, ReceivedAt, ID and Hash are used
	Limit    int         // 1 to 1000; zero means 100
}
