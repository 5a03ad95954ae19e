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

// Prepared is a command that is ready to be decided: checked, its payload
// decoded and canonical, its scope and instance settled, its fingerprint taken.
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
	by     string              // who requested the activity that has ended; for an undo see Request.By
	parent *transitions.Parent // of a child
	plans  []*workflow.Migration
	unfit  string // why the plan's result cannot be stored; "": not tried yet
	held   string // why no instance goes to the version of a migration now; "": nothing holds it

	refusal *workflow.Error // of the children that the outcome of an activity would start; nil: none is known

	settled bool   // an operator settles the command
	because string // the reason of that operator
}

// Prepare makes a command ready. w is the newest version of the workflow that
// the command names; older are those that instances may still be on, the newest
// of them first. newID gives the id of an instance that is created without a
// business key.
//
// Errors: the codes of malformed requests, TransitionNotFound.
func Prepare(c transitions.Command, w *workflow.Workflow, newID func() uuid.UUID, older ...*workflow.Workflow) (*Prepared, error) {
	c = c.WithDefaults()
	if err := checkReserved(c); err != nil {
		return nil, err
	}
	return prepare(c, c.Instance == uuid.Nil && c.BusinessKey == "", w, newID, older...)
}

// prepare is Prepare for callers that know the meaning of a name that both creates instances and changes them.
func prepare(
	c transitions.Command, creates bool, w *workflow.Workflow, newID func() uuid.UUID, older ...*workflow.Workflow,
) (*Prepared, error) {
	if err := CheckCommand(c); err != nil {
		return nil, err
	}
	p := &Prepared{Command: c, Creates: creates}
	if err := p.settle(w, newID, older); err != nil {
		return nil, err
	}
	p.Fingerprint = p.fingerprint()
	return p, nil
}

// settle decodes the payload and finds the instance.
func (p *Prepared) settle(w *workflow.Workflow, newID func() uuid.UUID, older []*workflow.Workflow) (err error) {
	defer func() {
		if v := recover(); v != nil { // a payload's own decoding, or its business key
			err = &workflow.Error{Code: workflow.Internal, Message: "the workflow's code failed",
				Cause: fmt.Errorf("panic in the payload of %s.%s: %v\n%s", p.Workflow, p.Transition, v, debug.Stack())}
		}
	}()
	if err := p.decode(w, older); err != nil {
		return err
	}
	return p.settleInstance(newID)
}

// decode takes the newest version that has the transition and accepts the
// payload, in canonical form where there is one already. The instance's version is not
// known yet: Decide decodes again where it is another one. Before it, Creates is what the name
// is to mean if it can mean both.
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

// BeginWith returns the command as a creation of an instance that begins with another version of the workflow.
//
// Error: NotOnThisNode where the command means something else by that version. Sent again, it is prepared by it.
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

// able settles whether the command creates an instance, and lists the versions that
// have such a transition, the newest first. Only the newest version creates; what is on an instance any version can mean that it may be on.
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

// steps are those of a version that the command can mean.
func (p *Prepared) steps(w *workflow.Workflow) []*workflow.Step {
	if p.Creates {
		return []*workflow.Step{w.Creating(p.Transition)}
	}
	return w.Moving(p.Transition)
}

// ErrOnlyCreates is why a command cannot be on the instance that it names: no version that is known here takes it there.
var ErrOnlyCreates = errors.New("the transition only creates instances")

func (p *Prepared) settleInstance(newID func() uuid.UUID) error {
	c := &p.Command
	addressed := c.Instance != uuid.Nil || c.BusinessKey != ""
	switch {
	case p.Creates && c.Instance != uuid.Nil:
		return &workflow.Error{Code: workflow.InvalidRequest, Cause: ErrOnlyCreates,
			Message: fmt.Sprintf("transition %q creates an instance; it cannot be applied to one", c.Transition)}
	case p.Creates && c.BusinessKey != "" && c.BusinessKey != p.Payload.BusinessKey():
		return workflow.Errorf(workflow.InvalidRequest, "the business key is not the one that the payload names")
	case !p.Creates && !addressed:
		return workflow.Errorf(workflow.InvalidRequest, "transition %q needs an instance or a business key", c.Transition)
	}
	if p.Creates {
		c.BusinessKey = p.Payload.BusinessKey()
	}
	p.settleScope()
	switch {
	case c.Instance != uuid.Nil:
	case c.BusinessKey != "":
		c.Instance = transitions.InstanceID(c.Tenant, c.Workflow, c.BusinessKey)
	default:
		c.Instance = newID()
	}
	return nil
}

// settleScope finds the scope, and the instance of what does not create one.
func (p *Prepared) settleScope() {
	c := &p.Command
	if !p.Creates && c.Instance == uuid.Nil {
		c.Instance = transitions.InstanceID(c.Tenant, c.Workflow, c.BusinessKey)
	}
	if c.Scope == "" {
		c.Scope = transitions.DefaultScope(c.Workflow, c.Transition, c.Instance)
	}
}

// WasStored reports whether the record is that of an earlier reading: the fingerprint of what creates an instance
// does not have the business key by which the caller names it.
func (p *Prepared) WasStored(r *transitions.Record) bool {
	return r.Fingerprint == p.Fingerprint && (p.Instance == uuid.Nil || p.Instance == r.Instance)
}

// EarlierReadings lists how a command may be stored that Prepare refuses now but has
// accepted under an earlier definition: its scope, key and fingerprint, the instance where it
// names one, and nothing else. The workflow must be named.
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
		p.settleScope()
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

// fingerprint is SHA-256 over the canonical request (RFC 8785): workflow,
// transition, instance, payload, expected version, actor; the time and the reason
// where the caller gives one. The id of a created instance is not the caller's and
// does not count. The members are written in their canonical order, around a payload
// that is canonical already.
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
