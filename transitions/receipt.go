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

// Receipt is the durable answer to a command.
type Receipt struct {
	Status   int  // the HTTP status: 200, 201, 202 while it is in flight, or that of the refusal
	Replayed bool // an earlier attempt's answer
	Instance uuid.UUID
	Version  int64  // the version that the command made; 0 for a refusal
	Position int64  // the log position of the transition; 0 for a refusal
	Body     []byte // JSON: a Result, or a Problem for a refusal; nil while it is in flight

	// Record is the command as it stands, while it is in flight.
	Record *Record
}

// InFlight reports whether the command is accepted and not finished.
func (r Receipt) InFlight() bool { return r.Status == 202 }

// Refused reports whether the command was decided and refused.
func (r Receipt) Refused() bool { return r.Status >= 400 }

// Err is the refusal as an error, nil for a command that was done.
func (r Receipt) Err() error {
	if !r.Refused() {
		return nil
	}
	var p Problem
	if err := json.Unmarshal(r.Body, &p); err != nil {
		return &workflow.Error{Code: workflow.Internal, Message: "the stored answer cannot be read", Cause: err}
	}
	return p.Err()
}

// Result reads the body of a command that was done; of a refusal it returns the
// error, and of a command in flight InProgress.
func (r Receipt) Result() (Result, error) {
	if r.InFlight() {
		return Result{}, workflow.Errorf(workflow.InProgress, "the command is in flight; wait for its end")
	}
	if err := r.Err(); err != nil {
		return Result{}, err
	}
	var out Result
	if err := json.Unmarshal(r.Body, &out); err != nil {
		return Result{}, &workflow.Error{Code: workflow.Internal, Message: "the stored answer cannot be read", Cause: err}
	}
	return out, nil
}

// Result is the body of a command that was done.
type Result struct {
	Instance   uuid.UUID      `json:"instance"`
	Workflow   string         `json:"workflow"`
	Transition string         `json:"transition"`
	State      workflow.State `json:"state"`
	Version    int64          `json:"version"`
	At         time.Time      `json:"at"`
	Existing   bool           `json:"existing,omitzero"` // the business key's instance, which was there before
	Result     jsontext.Value `json:"result,omitzero"`
	Overdue    []OverdueTimer `json:"overdue,omitempty"` // of an import, a migration or a correction: timers whose time has passed
	Position   int64          `json:"position,omitzero"`
}

// OverdueTimer is a timer whose time had passed when an import, a migration or a correction armed it.
type OverdueTimer struct {
	Timer      string    `json:"timer"`
	Transition string    `json:"transition"` // that it causes
	Due        time.Time `json:"due"`
	Fires      time.Time `json:"fires"` // unless the instance leaves its states before
}

// WithPosition returns a stored body with the position in it. The position is
// the last member, so that the stored bytes are a prefix of the answer's and
// every replay is byte-identical. Position 0 adds nothing. Several callers may
// get the same bytes, so nobody can append to them in place.
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
