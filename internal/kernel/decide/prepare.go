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

// Accept applies the defaults of a caller's command and validates everything that does not depend on its workflow. The caller sets the
// Workflow of a command that only names an instance, and calls Resolve.
//
// Errors: the codes of malformed requests.
func Accept(c transitions.Command) (*Prepared, error) {
	p := &Prepared{Command: c.WithDefaults()}
	p.Creates = p.Instance == uuid.Nil && p.BusinessKey == ""
	if err := p.checkReserved(); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return p, nil
}

// AcceptRun is Accept for the run of a schedule, whose scope and actor are Pawl's own.
func AcceptRun(c transitions.Command) (*Prepared, error) {
	p := &Prepared{Command: c, Creates: c.Instance == uuid.Nil && c.BusinessKey == ""}
	return p, p.check()
}

// Prepare calls Accept and Resolve for callers that know the workflow of the command.
func Prepare(c transitions.Command, w *workflow.Workflow, newID func() uuid.UUID, older ...*workflow.Workflow) (*Prepared, error) {
	p, err := Accept(c)
	if err != nil {
		return nil, err
	}
	if err := p.Resolve(newID, w, older...); err != nil {
		return nil, err
	}
	return p, nil
}

// Resolve decodes the payload and sets the instance, the scope and the fingerprint. newest is the default version of the workflow, older
// are other versions that instances may have, newest first. newID returns the id of an instance that is created without a business key.
// After an error p is unchanged, and can be resolved with other versions.
//
// Errors: TransitionNotFound, InvalidPayload, InvalidRequest; Internal for a panic in the payload's own decoding.
func (p *Prepared) Resolve(newID func() uuid.UUID, newest *workflow.Workflow, older ...*workflow.Workflow) (err error) {
	creates := p.Creates
	defer func() {
		if v := recover(); v != nil { // a payload's own decoding, or its business key
			err = &workflow.Error{Code: workflow.Internal, Message: "the workflow's code failed",
				Cause: fmt.Errorf("panic in the payload of %s.%s: %v\n%s", p.Workflow, p.Transition, v, debug.Stack())}
		}
		if err != nil {
			p.Creates, p.Hook, p.Works, p.Definition, p.Payload = creates, false, false, nil, workflow.Payload{}
		}
	}()
	if err := p.decode(newest, older); err != nil {
		return err
	}
	if err := p.resolveInstance(newID); err != nil {
		return err
	}
	p.Fingerprint = p.fingerprint()
	return nil
}

// decode selects the newest version that has the transition and accepts the payload. Decide decodes again if the instance has another
// version. Before, Creates says which meaning a name has that can both create and change instances. Only the newest version creates.
func (p *Prepared) decode(newest *workflow.Workflow, older []*workflow.Workflow) (err error) {
	versions := slices.DeleteFunc(append([]*workflow.Workflow{newest}, older...),
		func(w *workflow.Workflow) bool { return len(w.Moving(p.Transition)) == 0 })
	if p.Creates = newest.Creating(p.Transition) != nil && (p.Creates || len(versions) == 0); p.Creates {
		versions = []*workflow.Workflow{newest}
	}
	if len(versions) == 0 {
		return workflow.Errorf(workflow.TransitionNotFound, "workflow %q has no transition %q", newest.Name, p.Transition)
	}
	for _, w := range versions {
		steps := w.Moving(p.Transition) // those that the command can mean
		if p.Creates {
			steps = []*workflow.Step{w.Creating(p.Transition)}
		}
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
	if p.Definition != nil {
		return nil
	}
	return err
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

// ErrOnlyCreates is the cause of an error for a command on an instance if all known versions only create instances with it.
var ErrOnlyCreates = errors.New("the transition only creates instances")

func (p *Prepared) resolveInstance(newID func() uuid.UUID) error {
	addressed := p.Instance != uuid.Nil || p.BusinessKey != ""
	switch {
	case p.Creates && p.Instance != uuid.Nil:
		return &workflow.Error{Code: workflow.InvalidRequest, Cause: ErrOnlyCreates,
			Message: fmt.Sprintf("transition %q creates an instance; it cannot be applied to one", p.Transition)}
	case p.Creates && p.BusinessKey != "" && p.BusinessKey != p.Payload.BusinessKey():
		return invalid("the business key is not the one that the payload names")
	case !p.Creates && !addressed:
		return invalid("transition %q needs an instance or a business key", p.Transition)
	}
	if p.Creates {
		p.BusinessKey = p.Payload.BusinessKey()
	}
	p.resolveScope()
	switch {
	case p.Instance != uuid.Nil:
	case p.BusinessKey != "":
		p.Instance = workflow.InstanceID(p.Tenant, p.Workflow, p.BusinessKey)
	default:
		p.Instance = newID()
	}
	return nil
}

// resolveScope sets the scope, and the instance of a command that does not create one.
func (p *Prepared) resolveScope() {
	if !p.Creates && p.Instance == uuid.Nil {
		p.Instance = workflow.InstanceID(p.Tenant, p.Workflow, p.BusinessKey)
	}
	if p.Scope == "" {
		p.Scope = transitions.DefaultScope(p.Workflow, p.Transition, p.Instance)
	}
}

// WasStored reports whether the record is that of an earlier reading: the fingerprint of a creation does not include the business key by
// which the caller names the instance.
func (p *Prepared) WasStored(r *transitions.Record) bool {
	return r.Fingerprint == p.Fingerprint && (p.Instance == uuid.Nil || p.Instance == r.Instance)
}

// EarlierReadings returns the scope, key, fingerprint and instance with which a command that Resolve refuses may have been stored under an
// earlier definition.
func (p *Prepared) EarlierReadings() (list []*Prepared) {
	for _, creates := range []bool{false, true} {
		if addressed := p.Instance != uuid.Nil || p.BusinessKey != ""; creates && p.Instance != uuid.Nil || !creates && !addressed {
			continue
		}
		p := &Prepared{Command: p.Command, Canonical: p.Canonical, Creates: creates}
		p.resolveScope()
		p.Fingerprint = p.fingerprint()
		if p.BusinessKey != "" {
			p.Instance = workflow.InstanceID(p.Tenant, p.Workflow, p.BusinessKey)
		}
		list = append(list, p)
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

// maxYear bounds times to what PostgreSQL and JSON can represent.
const maxYear = 9999

func invalid(format string, args ...any) *workflow.Error {
	return workflow.Errorf(workflow.InvalidRequest, format, args...)
}

// check refuses what cannot be stored or has no meaning, and makes the payload canonical. It does not check the workflow.
func (p *Prepared) check() (err error) {
	if err := transitions.CheckKey(p.Key); err != nil {
		return err
	}
	if p.Scope != "" {
		if err := transitions.CheckScope(p.Scope); err != nil {
			return err
		}
	}
	if err := transitions.CheckTenant(p.Tenant); err != nil {
		return err
	}
	for _, text := range [...]struct {
		name, value string
		limit       int
	}{
		{"actor", p.Actor, transitions.MaxActor}, {"proof of the actor", p.Proof, transitions.MaxProof},
		{"id of the credential", p.Credential.Key, transitions.MaxProof}, {"id of the credential", p.Credential.Ticket, transitions.MaxProof},
		{"reason", p.Reason, transitions.MaxReason}, {"business key", p.BusinessKey, workflow.MaxBusinessKey},
	} {
		if problem := transitions.TextProblem(text.value, text.limit); problem != "" {
			return invalid("the %s %s", text.name, problem)
		}
	}
	happened := p.HappenedAt.UTC()
	switch {
	case p.Instance != uuid.Nil && p.BusinessKey != "":
		return invalid("give the instance or the business key, not both")
	case p.BusinessKey != "" && p.Workflow == "":
		return invalid("a business key needs its workflow")
	case p.Transition == "":
		return invalid("the transition is missing")
	case p.IfVersion < 0:
		return invalid("the expected version is negative")
	case p.NotBefore.UTC().Year() > maxYear:
		return invalid("the command is for after the year %d", maxYear)
	case !p.HappenedAt.IsZero() && (happened.Year() <= 1 || happened.Year() > maxYear):
		return invalid("the command has happened at a time that cannot be stored")
	case !p.HappenedAt.IsZero() && !p.NotBefore.IsZero():
		return invalid("what has happened already cannot be decided later")
	case p.Replay < 0 || p.Tombstone < 0:
		return invalid("the time for which the key is to be good is negative")
	case len(p.Command.Payload) > transitions.MaxPayload:
		return workflow.Errorf(workflow.TooLarge, "the payload is larger than %d bytes", transitions.MaxPayload)
	}
	p.Canonical, err = Canonical(p.Command.Payload)
	return err
}

// CheckKeep refuses, as InvalidRequest, retention periods longer than the workflow allows. h are the workflow's periods, resolved.
func (p *Prepared) CheckKeep(h workflow.Horizons) error {
	for _, one := range []struct {
		what        string
		asked, most time.Duration
	}{{"the answer can be replayed", p.Replay, h.MaxReplay}, {"the tombstone can stay", p.Tombstone, h.MaxTombstone}} {
		if one.asked > one.most {
			return invalid("in workflow %q %s for %d seconds (%s) at most", p.Workflow, one.what, one.most/time.Second, one.most)
		}
	}
	return nil
}

// checkReserved refuses names that only Pawl itself may use.
func (p *Prepared) checkReserved() error {
	if prefix := transitions.ReservedPrefix(p.Scope); prefix != "" {
		return workflow.Errorf(workflow.ScopeInvalid, "scopes that begin with %q are Pawl's own", prefix)
	}
	return CheckActor(p.Actor)
}

// CheckActor refuses, as InvalidRequest, an actor that cannot be stored or is reserved for Pawl.
func CheckActor(actor string) error {
	if prefix := transitions.ReservedPrefix(actor); prefix != "" {
		return invalid("actors that begin with %q are Pawl's own", prefix)
	}
	if problem := transitions.TextProblem(actor, transitions.MaxActor); problem != "" {
		return invalid("the actor %s", problem)
	}
	return nil
}
