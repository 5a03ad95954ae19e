package stream

import (
	"errors"
	"os"

	"github.com/gorilla/websocket"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Close codes of the subprotocol, beside those of RFC 6455.
const (
	closeBadMessage = 4400 // what the client sent is no message; it must not send it again
	closeGone       = 4410 // the events that the client asks for were removed; the reason says where the log begins
	closeSlow       = 4408 // the client reads too slowly; it may resume where the reason says
	closeNoStatus   = websocket.CloseNoStatusReceived
)

// closing is why a connection ends, as a context's cause.
type closing struct {
	code   int // 0: say nothing, there is nobody to say it to
	reason string
}

func (c *closing) Error() string { return "closing: " + c.reason }

var (
	gone      = &closing{reason: "the peer is gone"}
	goingAway = &closing{code: websocket.CloseGoingAway, reason: "the node is stopping; resume elsewhere"}
	tooSlow   = &closing{code: closeSlow, reason: "too slow"} // the writer knows where a reader of the log can resume
)

func badMessage(reason string) *closing { return &closing{code: closeBadMessage, reason: reason} }

// closingOf is what an error of the log, or of a watched command, means for the
// connection.
func closingOf(err error) *closing {
	switch workflow.CodeOf(err) {
	case workflow.ShuttingDown:
		return goingAway
	case workflow.EventsGone:
		return &closing{code: closeGone, reason: transitions.ProblemOf(err).Detail}
	}
	return &closing{code: websocket.CloseInternalServerErr, reason: "the database cannot be read; resume later"}
}

// closingAfter is what a failed write means for the connection.
func closingAfter(err error) *closing {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return tooSlow
	}
	return gone
}
