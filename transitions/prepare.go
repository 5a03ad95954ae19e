package transitions

import (
	"crypto/sha256"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// Prepared is a command that is ready to be decided: checked, its payload
// decoded and canonical, its scope and instance settled, its fingerprint taken.
type Prepared struct {
	Command
	Definition  *workflow.Workflow // the newest version, by which the payload was decoded
	Payload     workflow.Payload
	Canonical   []byte // the payload as RFC 8785 has it
	Fingerprint [32]byte
	Creates     bool
	Hook        bool // some step of that name has a Hook
}

// Prepare makes a command ready. newID gives the id of an instance that is
// created without a business key. The command's Workflow must be w's name.
//
// Errors: the codes of malformed requests, TransitionNotFound.
func Prepare(c Command, w *workflow.Workflow, newID func() uuid.UUID) (*Prepared, error) {
	c = c.WithDefaults()
	if err := c.Check(); err != nil {
		return nil, err
	}
	steps := w.Named(c.Transition)
	if len(steps) == 0 {
		return nil, workflow.Errorf(workflow.TransitionNotFound, "workflow %q has no transition %q", w.Name, c.Transition)
	}
	p := &Prepared{Command: c, Definition: w, Creates: steps[0].Start}
	for _, s := range steps {
		p.Hook = p.Hook || s.Hook != nil
	}
	var err error
	if p.Canonical, err = Canonical(c.Payload); err != nil {
		return nil, err
	}
	if p.Payload, err = steps[0].Decode(p.Canonical); err != nil {
		return nil, err
	}
	if err := p.settleInstance(newID); err != nil {
		return nil, err
	}
	p.Fingerprint = p.fingerprint()
	return p, nil
}

func (p *Prepared) settleInstance(newID func() uuid.UUID) error {
	c := &p.Command
	addressed := c.Instance != uuid.Nil || c.BusinessKey != ""
	switch {
	case p.Creates && c.Instance != uuid.Nil:
		return workflow.Errorf(workflow.InvalidRequest, "transition %q creates an instance; it cannot be applied to one", c.Transition)
	case p.Creates && c.BusinessKey != "" && c.BusinessKey != p.Payload.BusinessKey():
		return workflow.Errorf(workflow.InvalidRequest, "the business key is not the one that the payload names")
	case !p.Creates && !addressed:
		return workflow.Errorf(workflow.InvalidRequest, "transition %q needs an instance or a business key", c.Transition)
	}
	if p.Creates {
		c.BusinessKey = p.Payload.BusinessKey()
	}
	if c.Scope == "" {
		id := c.Instance
		if !p.Creates && id == uuid.Nil {
			id = InstanceID(c.Tenant, c.Workflow, c.BusinessKey)
		}
		c.Scope = DefaultScope(c.Workflow, c.Transition, id)
	}
	switch {
	case c.Instance != uuid.Nil:
	case c.BusinessKey != "":
		c.Instance = InstanceID(c.Tenant, c.Workflow, c.BusinessKey)
	default:
		c.Instance = newID()
	}
	return nil
}

// fingerprint is SHA-256 over the canonical request (RFC 8785): workflow,
// transition, instance, payload, expected version, actor. The id of a created
// instance is not the caller's and does not count. The members are written in
// their canonical order, around a payload that is canonical already.
func (p *Prepared) fingerprint() [32]byte {
	b := make([]byte, 0, 256+len(p.Canonical))
	b = append(b, `{"actor":`...)
	b = appendQuoted(b, p.Actor)
	b = append(b, `,"if_version":`...)
	b = strconv.AppendInt(b, p.IfVersion, 10)
	b = append(b, `,"instance":`...)
	if p.Creates {
		b = append(b, "null"...)
	} else {
		b = appendQuoted(b, p.Instance.String())
	}
	b = append(b, `,"payload":`...)
	b = append(b, p.Canonical...)
	b = append(b, `,"transition":`...)
	b = appendQuoted(b, p.Transition)
	b = append(b, `,"workflow":`...)
	b = appendQuoted(b, p.Workflow)
	b = append(b, '}')
	return sha256.Sum256(b)
}

// appendQuoted writes a JSON string. The default escaping of jsontext is the
// one of RFC 8785, and the input is valid UTF-8 by now.
func appendQuoted(b []byte, s string) []byte {
	out, err := jsontext.AppendQuote(b, s)
	if err != nil {
		return strconv.AppendQuote(b, s) // only for invalid UTF-8, which Check refuses
	}
	return out
}
