package stream

import (
	"encoding/binary"
	"errors"
	"os"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/websocket"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The first bytes of the frames that a server sends: final, and the opcode (RFC
// 6455, section 5.2). A server does not mask.
const (
	frameText  = 0x81
	frameClose = 0x88
	framePing  = 0x89
	framePong  = 0x8a
)

// maxControl is the longest payload of a control frame in bytes.
const maxControl = 125

// appendHeader appends the header of a frame with n bytes of payload.
func appendHeader(b []byte, first byte, n int) []byte {
	switch {
	case n <= maxControl:
		return append(b, first, byte(n))
	case n <= 0xffff:
		return binary.BigEndian.AppendUint16(append(b, first, 126), uint16(n))
	default:
		return binary.BigEndian.AppendUint64(append(b, first, 127), uint64(n))
	}
}

// appendFrame appends a whole frame.
func appendFrame(b []byte, first byte, payload []byte) []byte {
	return append(appendHeader(b, first, len(payload)), payload...)
}

// appendClose appends a close frame. Code 1005 has no payload: it stands for a
// peer that gave none.
func appendClose(b []byte, code int, reason string) []byte {
	if code == closeNoStatus {
		return appendHeader(b, frameClose, 0)
	}
	if len(reason) > maxControl-2 {
		reason = reason[:maxControl-2]
	}
	b = appendHeader(b, frameClose, 2+len(reason))
	return append(binary.BigEndian.AppendUint16(b, uint16(code)), reason...)
}

// frameEnd returns where the frame ends that byte n of b is in. b is whole
// frames of a server; n is within it.
func frameEnd(b []byte, n int) int {
	end := 0
	for end < n {
		length, header := int(b[end+1]), 2
		switch length {
		case 126:
			length, header = int(binary.BigEndian.Uint16(b[end+2:])), 4
		case 127:
			length, header = int(binary.BigEndian.Uint64(b[end+2:])), 10
		}
		end += header + length
	}
	return end
}

// The pieces of an event message, around the subscription's id, the position
// and the CloudEvent.
const (
	eventMore = `,"more":true`
	eventBody = `,"event":`
)

// eventHead is how an event message of a subscription begins.
func eventHead(id string) []byte {
	return append(appendMember([]byte(`{"op":"event","id":`), id), `,"position":`...)
}

// appendEvent appends an event message as a frame.
func appendEvent(b, head []byte, e *transitions.Logged, more bool) []byte {
	var digits [20]byte
	position := strconv.AppendInt(digits[:0], e.Position, 10)
	n := len(head) + len(position) + len(eventBody) + len(e.CloudEvent) + 1
	if more {
		n += len(eventMore)
	}
	b = appendHeader(b, frameText, n)
	b = append(b, head...)
	b = append(b, position...)
	if more {
		b = append(b, eventMore...)
	}
	b = append(b, eventBody...)
	b = append(b, e.CloudEvent...)
	return append(b, '}')
}

// answerFrame is the frame of a message that names a subscription and a
// position: "subscribed" with "after", "caught_up" with "position".
func answerFrame(op, id, member string, position int64) []byte {
	b := appendMember([]byte(`{"op":"`+op+`","id":`), id)
	b = append(b, `,"`+member+`":`...)
	b = strconv.AppendInt(b, position, 10)
	return appendFrame(nil, frameText, append(b, '}'))
}

// endFrame is the frame of the message "unsubscribed".
func endFrame(id string) []byte {
	return appendFrame(nil, frameText, append(appendMember([]byte(`{"op":"unsubscribed","id":`), id), '}'))
}

// errorFrame encodes the message "error": a request of the client was refused, and the connection continues.
func errorFrame(id string, p transitions.Problem) []byte {
	b := appendMember([]byte(`{"op":"error","id":`), id)
	b = appendMember(append(b, `,"code":`...), string(p.Code))
	b = appendMember(append(b, `,"detail":`...), p.Detail)
	return appendFrame(nil, frameText, append(b, '}'))
}

// appendMember appends a string as JSON. All of them are valid UTF-8: they were
// JSON before, or are our own.
func appendMember(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

// Close codes of the subprotocol, beside those of RFC 6455.
const (
	closeBadMessage = wire.CloseBadMessage
	closeEnded      = wire.CloseEnded
	closeGone       = wire.CloseGone
	closeSlow       = wire.CloseSlow
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
	ended     = &closing{code: closeEnded, reason: "the credential has ended"}
	tooSlow   = &closing{code: closeSlow, reason: "too slow"} // the writer knows where a reader of the log can resume
)

// CredentialEnded is the cause of the end of a request's context that ends its stream because the
// caller's credential has ended.
var CredentialEnded error = ended

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
