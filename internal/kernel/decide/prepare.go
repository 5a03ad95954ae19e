package decide

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Prepared is a validated command with its decoded and canonical payload, scope, instance and fingerprint.
type Prepared struct {
	transitions.Command
	Definition  *workflow.Workflow // the version by which the payload was decoded; of a creation, the newest
	Payload     workflow.Payload
	Canonical   []byte // the payload as RFC 8785 has it
	Fingerprint [32]byte
	Creates     bool
	Hook        bool // some step of that name, of any version, has a Hook
	Works       bool // likewise, an activity: unless it is refused, the command will be in flight

	Resumed   *Resumed               // the attempt with which a command in flight continues; nil: an attempt of a caller
	Operation *transitions.Operation // what an operator asks; nil: a transition
	Stuck     *transitions.Record    // the target of the operation, read before the decision; nil for none

	effect string              // the key of the effect that an undo is about
	from   workflow.State      // see Request.From
	by     string              // the actor of the completed activity; for an undo see Request.By
	parent *transitions.Parent // of a child
	plans  []*workflow.Migration
	unfit  string // why the plan's result cannot be stored; "": not tried yet
	held   string // why no instance goes to the version of a migration now; "": nothing holds it

	refusal *workflow.Error // of the children that the outcome of an activity would start; nil: none is known

	settled bool   // an operator settles the command
	because string // the reason of that operator
}

// Prepare prepares a command. w is the newest version of its workflow, older are other versions that instances may have, newest first.
// newID returns the id of an instance that is created without a business key.
//
// Errors: the codes of malformed requests, TransitionNotFound.
func Prepare(c transitions.Command, w *workflow.Workflow, newID func() uuid.UUID, older ...*workflow.Workflow) (*Prepared, error) {
	c = c.WithDefaults()
	if err := checkReserved(c); err != nil {
		return nil, err
	}
	return prepare(c, c.Instance == uuid.Nil && c.BusinessKey == "", w, newID, older...)
}

// prepare is Prepare for callers that know whether a name with both meanings creates an instance.
func prepare(
	c transitions.Command, creates bool, w *workflow.Workflow, newID func() uuid.UUID, older ...*workflow.Workflow,
) (*Prepared, error) {
	if err := CheckCommand(c); err != nil {
		return nil, err
	}
	p := &Prepared{Command: c, Creates: creates}
	if err := p.resolve(w, newID, older); err != nil {
		return nil, err
	}
	p.Fingerprint = p.fingerprint()
	return p, nil
}

// resolve decodes the payload and finds the instance.
func (p *Prepared) resolve(w *workflow.Workflow, newID func() uuid.UUID, older []*workflow.Workflow) (err error) {
	defer func() {
		if v := recover(); v != nil { // a payload's own decoding, or its business key
			err = &workflow.Error{Code: workflow.Internal, Message: "the workflow's code failed",
				Cause: fmt.Errorf("panic in the payload of %s.%s: %v\n%s", p.Workflow, p.Transition, v, debug.Stack())}
		}
	}()
	if err := p.decode(w, older); err != nil {
		return err
	}
	return p.resolveInstance(newID)
}

// decode selects the newest version that has the transition and accepts the payload. Decide decodes again if the instance has another
// version. Before, Creates says which meaning a name has that can both create and change instances.
func (p *Prepared) decode(newest *workflow.Workflow, older []*workflow.Workflow) (err error) {
	able := p.able(newest, older)
	if len(able) == 0 {
		return workflow.Errorf(workflow.TransitionNotFound, "workflow %q has no transition %q", newest.Name, p.Transition)
	}
	if p.Canonical == nil {
		if p.Canonical, err = Canonical(p.Command.Payload); err != nil {
			return err
		}
	}
	for _, w := range able {
		steps := p.steps(w)
		p.Hook = p.Hook || slices.ContainsFunc(steps, func(s *workflow.Step) bool { return s.Hook != nil })
		p.Works = p.Works || slices.ContainsFunc(steps, func(s *workflow.Step) bool { return s.Work != nil })
		if p.Definition != nil {
			continue
		}
		payload, refusal := steps[0].Decode(p.Canonical)
		if refusal == nil {
			p.Definition, p.Payload = w, payload
		} else if err == nil {
			err = refusal // of the newest that has it
		}
	}
	if p.Definition == nil {
		return err
	}
	return nil
}

// BeginWith returns the command as the creation of an instance with another version of the workflow.
//
// Error: NotOnThisNode if the command means something else in that version; a retry is prepared with it.
func (p *Prepared) BeginWith(w *workflow.Workflow) (as *Prepared, err error) {
	again := &workflow.Error{Code: workflow.NotOnThisNode,
		Message: "the version that new instances begin with has just changed; send it again with the same key"}
	defer func() {
		if v := recover(); v != nil { // a payload's own decoding, or its business key
			again.Cause = fmt.Errorf("panic in the payload of %s.%s: %v\n%s", p.Workflow, p.Transition, v, debug.Stack())
			as, err = nil, again
		}
	}()
	own := *p
	step := w.Creating(p.Transition)
	if step == nil {
		return nil, again
	}
	payload, err := step.Decode(p.Canonical)
	if err != nil {
		again.Cause = err
		return nil, again
	}
	own.Definition, own.Payload, own.Hook, own.Works = w, payload, step.Hook != nil, step.Work != nil
	if own.Hook != p.Hook || own.Works != p.Works || payload.BusinessKey() != p.BusinessKey {
		return nil, again
	}
	return &own, nil
}

// able sets Creates and returns the versions that have the transition, the newest first. Only the newest version creates.
func (p *Prepared) able(newest *workflow.Workflow, older []*workflow.Workflow) (able []*workflow.Workflow) {
	for _, w := range append([]*workflow.Workflow{newest}, older...) {
		if len(w.Moving(p.Transition)) > 0 {
			able = append(able, w)
		}
	}
	p.Creates = newest.Creating(p.Transition) != nil && (p.Creates || len(able) == 0)
	if p.Creates {
		return []*workflow.Workflow{newest}
	}
	return able
}

// steps returns the steps of a version that the command can mean.
func (p *Prepared) steps(w *workflow.Workflow) []*workflow.Step {
	if p.Creates {
		return []*workflow.Step{w.Creating(p.Transition)}
	}
	return w.Moving(p.Transition)
}

// ErrOnlyCreates is the cause of an error for a command on an instance if all known versions only create instances with it.
var ErrOnlyCreates = errors.New("the transition only creates instances")

func (p *Prepared) resolveInstance(newID func() uuid.UUID) error {
	c := &p.Command
	addressed := c.Instance != uuid.Nil || c.BusinessKey != ""
	switch {
	case p.Creates && c.Instance != uuid.Nil:
		return &workflow.Error{Code: workflow.InvalidRequest, Cause: ErrOnlyCreates,
			Message: fmt.Sprintf("transition %q creates an instance; it cannot be applied to one", c.Transition)}
	case p.Creates && c.BusinessKey != "" && c.BusinessKey != p.Payload.BusinessKey():
		return invalid("the business key is not the one that the payload names")
	case !p.Creates && !addressed:
		return invalid("transition %q needs an instance or a business key", c.Transition)
	}
	if p.Creates {
		c.BusinessKey = p.Payload.BusinessKey()
	}
	p.resolveScope()
	switch {
	case c.Instance != uuid.Nil:
	case c.BusinessKey != "":
		c.Instance = transitions.InstanceID(c.Tenant, c.Workflow, c.BusinessKey)
	default:
		c.Instance = newID()
	}
	return nil
}

// resolveScope sets the scope, and the instance of a command that does not create one.
func (p *Prepared) resolveScope() {
	c := &p.Command
	if !p.Creates && c.Instance == uuid.Nil {
		c.Instance = transitions.InstanceID(c.Tenant, c.Workflow, c.BusinessKey)
	}
	if c.Scope == "" {
		c.Scope = transitions.DefaultScope(c.Workflow, c.Transition, c.Instance)
	}
}

// WasStored reports whether the record is that of an earlier reading: the fingerprint of a creation does not include the business key by
// which the caller names the instance.
func (p *Prepared) WasStored(r *transitions.Record) bool {
	return r.Fingerprint == p.Fingerprint && (p.Instance == uuid.Nil || p.Instance == r.Instance)
}

// EarlierReadings returns the scope, key, fingerprint and instance with which a command that Prepare refuses may have been stored under an
// earlier definition. The workflow is required.
func EarlierReadings(c transitions.Command) (list []*Prepared) {
	c = c.WithDefaults()
	if checkReserved(c) != nil || CheckCommand(c) != nil {
		return nil
	}
	canonical, err := Canonical(c.Payload)
	if err != nil {
		return nil
	}
	add := func(creates bool) {
		p := &Prepared{Command: c, Canonical: canonical, Creates: creates}
		p.resolveScope()
		p.Fingerprint = p.fingerprint()
		if c.BusinessKey != "" {
			p.Instance = transitions.InstanceID(c.Tenant, c.Workflow, c.BusinessKey)
		}
		list = append(list, p)
	}
	if c.Instance != uuid.Nil || c.BusinessKey != "" {
		add(false)
	}
	if c.Instance == uuid.Nil {
		add(true)
	}
	return list
}

// fingerprint is SHA-256 over the canonical request (RFC 8785): workflow, transition, instance (not the generated id of a creation),
// payload, expected version, actor, and the time and reason if given. The members are written in canonical order.
func (p *Prepared) fingerprint() [32]byte {
	b := make([]byte, 0, 256+len(p.Canonical))
	b = append(b, `{"actor":`...)
	b, _ = jsontext.AppendQuote(b, p.Actor)
	if !p.HappenedAt.IsZero() {
		b = append(b, `,"happened_at":"`...)
		b = p.HappenedAt.UTC().AppendFormat(b, time.RFC3339Nano)
		b = append(b, '"')
	}
	b = append(b, `,"if_version":`...)
	b = strconv.AppendInt(b, p.IfVersion, 10)
	b = append(b, `,"instance":`...)
	if p.Creates {
		b = append(b, "null"...)
	} else {
		b, _ = jsontext.AppendQuote(b, p.Instance.String())
	}
	if !p.NotBefore.IsZero() {
		b = append(b, `,"not_before":"`...)
		b = p.NotBefore.UTC().AppendFormat(b, time.RFC3339Nano)
		b = append(b, '"')
	}
	b = append(b, `,"payload":`...)
	b = append(b, p.Canonical...)
	if p.Reason != "" {
		b = append(b, `,"reason":`...)
		b, _ = jsontext.AppendQuote(b, p.Reason)
	}
	b = append(b, `,"transition":`...)
	b, _ = jsontext.AppendQuote(b, p.Transition)
	b = append(b, `,"workflow":`...)
	b, _ = jsontext.AppendQuote(b, p.Workflow)
	b = append(b, '}')
	return sha256.Sum256(b)
}
