package transitions

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/workflow"
)

// Problem is a problem document (RFC 9457), the body of every error.
type Problem struct {
	Type    string                `json:"type"`
	Title   string                `json:"title"`
	Status  int                   `json:"status"`
	Code    workflow.Code         `json:"code"`
	Detail  string                `json:"detail"`
	Final   bool                  `json:"final,omitzero"` // the stored result of the key
	State   workflow.State        `json:"state,omitempty"`
	Allowed []string              `json:"allowed,omitempty"`
	Errors  []workflow.FieldError `json:"errors,omitempty"`

	// Position is the position of the transition, if a failure caused one, and the first stored position for events_gone.
	Position int64 `json:"position,omitzero"`
}

// problemTypes is the documentation of the codes.
const problemTypes = "https://github.com/pawlhq/pawl/blob/main/docs/errors.md#"

const finalHint = " This answer is final for this key; another try needs a new key."

// ProblemOf returns the problem document of an error. It hides causes and errors that are not an *workflow.Error.
func ProblemOf(err error) Problem {
	e := workflow.AsError(err)
	info := e.Code.Info()
	p := Problem{
		Type: problemTypes + string(info.Code), Title: info.Meaning, Status: info.Status, Code: info.Code,
		Detail: e.Message, State: e.State, Allowed: e.Allowed, Errors: e.Fields, Position: e.Position,
	}
	if info.Final {
		return p.Kept()
	}
	return p
}

// Kept returns the document as the stored, final result of its key.
func (p Problem) Kept() Problem {
	if !p.Final {
		p.Final, p.Detail = true, p.Detail+"."+finalHint
	}
	return p
}

// Unkept returns the document without being a stored result, as for a dry run.
func (p Problem) Unkept() Problem {
	if p.Final {
		p.Final, p.Detail = false, trimFinalHint(p.Detail)
	}
	return p
}

// JSON renders the document. Invalid UTF-8 in messages is replaced.
func (p Problem) JSON() []byte {
	raw, err := json.Marshal(p, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("transitions: a problem has nothing that JSON cannot say: " + err.Error())
	}
	return raw
}

// Err returns the problem as an error.
func (p Problem) Err() *workflow.Error {
	message := p.Detail
	if p.Final {
		message = trimFinalHint(message)
	}
	return &workflow.Error{Code: p.Code, Message: message, Fields: p.Errors, State: p.State, Allowed: p.Allowed, Position: p.Position}
}

func trimFinalHint(s string) string {
	if n := len(s) - len("."+finalHint); n >= 0 && s[n:] == "."+finalHint {
		return s[:n]
	}
	return s
}
