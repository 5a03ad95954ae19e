package inspect

import (
	"time"

	"github.com/pawlhq/pawl/transitions"
)

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
