package transitions

import (
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// Receipt is the durable result of a command.
type Receipt struct {
	Status   int  // HTTP status: 200, 201, 202 while in flight, or that of the refusal
	Replayed bool // result of an earlier attempt
	Instance uuid.UUID
	Version  int64  // of the instance after the command; 0 for a refusal
	Position int64  // log position of the transition; 0 for a refusal
	Body     []byte // JSON: a Result, or a Problem for a refusal; nil while in flight

	// Record is the status of a command in flight.
	Record *Record
}

// InFlight reports whether the command is accepted but not complete.
func (r Receipt) InFlight() bool { return r.Status == 202 }

// Refused reports whether the command was refused.
func (r Receipt) Refused() bool { return r.Status >= 400 }

// Err returns the refusal as an error, or nil.
func (r Receipt) Err() error {
	if !r.Refused() {
		return nil
	}
	var p Problem
	if err := json.Unmarshal(r.Body, &p); err != nil {
		return &workflow.Error{Code: workflow.Internal, Message: "cannot read the stored result", Cause: err}
	}
	return p.Err()
}

// Result returns the result of a successful command. For a refusal it returns the error, and for a command in flight InProgress.
func (r Receipt) Result() (Result, error) {
	if r.InFlight() {
		return Result{}, workflow.Errorf(workflow.InProgress, "the command is in flight; wait for its end")
	}
	if err := r.Err(); err != nil {
		return Result{}, err
	}
	var out Result
	if err := json.Unmarshal(r.Body, &out); err != nil {
		return Result{}, &workflow.Error{Code: workflow.Internal, Message: "cannot read the stored result", Cause: err}
	}
	return out, nil
}

// Result is the body of a successful command.
type Result struct {
	Instance   uuid.UUID      `json:"instance"`
	Workflow   string         `json:"workflow"`
	Transition string         `json:"transition"`
	State      workflow.State `json:"state"`
	Version    int64          `json:"version"`
	At         time.Time      `json:"at"`
	Existing   bool           `json:"existing,omitzero"` // the instance of the business key existed before
	Result     jsontext.Value `json:"result,omitzero"`
	Overdue    []OverdueTimer `json:"overdue,omitempty"` // of an import, a migration or a correction: timers whose time has passed
	Position   int64          `json:"position,omitzero"`
}

// OverdueTimer is a timer whose time had passed when an import, a migration or a correction armed it.
type OverdueTimer struct {
	Timer      string    `json:"timer"`
	Transition string    `json:"transition"` // caused by the timer
	Due        time.Time `json:"due"`
	Fires      time.Time `json:"fires"` // unless the instance leaves the timer's states before
}

// WithPosition adds the position to a stored body as its last member, so that stored bytes are a prefix of the response and replays are
// byte-identical. Position 0 adds nothing. The result must not be modified, as callers may share it.
func WithPosition(body []byte, position int64) []byte {
	if position == 0 || len(body) == 0 {
		return slices.Clip(body)
	}
	out := make([]byte, 0, len(body)+32)
	out = append(out, body[:len(body)-1]...)
	out = append(out, `,"position":`...)
	out = strconv.AppendInt(out, position, 10)
	return slices.Clip(append(out, '}'))
}
