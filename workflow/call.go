package workflow

import (
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// Facts is what a decision may know besides the data and the payload.
type Facts struct {
	Now      time.Time
	Tenant   string
	Actor    string
	Instance uuid.UUID
	Version  int64 // the instance's version before this command; 0 for a creation
	State    State // the state before this command; "" for a creation
	From     State // of the outcome of an activity: where its command was accepted; "" where that is not kept, see Work.KeepsFrom
	Reason   string
	Spawned  int // children that earlier steps of the same command have started
}

// Call is one command as an action sees it: the facts, and what the action
// wants to happen besides changing the data.
type Call struct {
	facts   Facts
	step    *Step
	targets []State // the first is where it goes unless the action says otherwise
	to      State
	events  []Emitted
	spawns  []Spawned
	result  []byte
	reason  string
	keep    time.Duration
	err     error // the first misuse of the Call, a defect of the workflow
}

// Emitted is an event that an action asks for.
type Emitted struct {
	Type    string
	Payload []byte // JSON
}

// Now is the time of the decision, the same for everything it causes.
func (c *Call) Now() time.Time { return c.facts.Now }

// Tenant is the tenant of the command.
func (c *Call) Tenant() string { return c.facts.Tenant }

// Actor is who sent the command.
func (c *Call) Actor() string { return c.facts.Actor }

// Reason is why the actor asks, "" where he does not say.
func (c *Call) Reason() string { return c.facts.Reason }

// Instance is the id of the instance.
func (c *Call) Instance() uuid.UUID { return c.facts.Instance }

// Version counts the instance's transitions before this command.
func (c *Call) Version() int64 { return c.facts.Version }

// State is the instance's state before this command, "" for a creation.
func (c *Call) State() State { return c.facts.State }

// Emit adds an event to the one that every transition has. The payload is
// encoded as JSON at once. The type is 1 to 255 bytes of text without control
// characters, such as "order.payment". One command can have one event of a type; a
// second one, or another type, is a defect of the workflow and fails the command.
func (c *Call) Emit(eventType string, payload any) {
	if problem := eventTypeProblem(eventType); problem != "" {
		c.fail(fmt.Errorf("transition %q emits an event of type %q, which %s", c.step.Name, eventType, problem))
		return
	}
	for _, e := range c.events {
		if e.Type == eventType {
			c.fail(fmt.Errorf("transition %q emits event %q twice", c.step.Name, eventType))
			return
		}
	}
	raw, err := json.Marshal(payload, jsonOut)
	if err != nil {
		c.fail(fmt.Errorf("transition %q: encode event %q: %w", c.step.Name, eventType, err))
		return
	}
	c.events = append(c.events, Emitted{Type: eventType, Payload: raw})
}

// eventTypeProblem says why a text cannot be the type of an event, or "". What
// CloudEvents forbids in a string (section 3.2) could not be sent on.
func eventTypeProblem(s string) string {
	switch {
	case s == "":
		return "is empty"
	case len(s) > 255:
		return "is longer than 255 bytes"
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	}
	for _, r := range s {
		if unicode.IsControl(r) || r&0xFFFE == 0xFFFE || r >= 0xFDD0 && r <= 0xFDEF {
			return fmt.Sprintf("contains %U, which CloudEvents allows in no text", r)
		}
	}
	return ""
}

// Return gives the caller a result of the transition's own, encoded as JSON: it
// stands under "result" in the answer, and in every replay of it.
func (c *Call) Return(result any) {
	raw, err := json.Marshal(result, jsonOut)
	if err != nil {
		c.fail(fmt.Errorf("transition %q: encode result: %w", c.step.Name, err))
		return
	}
	c.result = raw
}

// Spawn starts a child instance in the transaction of this command, and returns
// its id. The payload is encoded at once. If the child cannot be started the command
// fails: that is a defect of the workflow, except for a business key that is taken.
func (c *Call) Spawn(child Child) uuid.UUID {
	id := c.childID(&child)
	if child.Payload == nil {
		child.Payload = None{}
	}
	raw, err := json.Marshal(child.Payload, jsonOut)
	if err != nil {
		c.fail(fmt.Errorf("transition %q: encode the payload of child %q: %w", c.step.Name, child.Workflow, err))
		return id
	}
	c.spawns = append(c.spawns, Spawned{ID: id, Workflow: child.Workflow, Transition: child.Transition, BusinessKey: child.BusinessKey,
		Payload: raw, End: child.End})
	return id
}

// childID is the id of the next child, the same whenever the decision is made
// again. Without a business key it follows from the parent, the version that
// the parent is about to have, and the number of the child.
func (c *Call) childID(child *Child) uuid.UUID {
	if child.BusinessKey != "" {
		return InstanceID(c.facts.Tenant, child.Workflow, child.BusinessKey)
	}
	return InstanceID(c.facts.Tenant, fmt.Sprintf("%s/%d", c.facts.Instance, c.facts.Version+1), strconv.Itoa(c.facts.Spawned+len(c.spawns)))
}

// KeepAnswer has the answer to the command replayed for at least d from now on,
// where it would be dropped earlier. It counts in the action that completes the
// command: of an activity, in the one that takes its outcome.
func (c *Call) KeepAnswer(d time.Duration) {
	if d < 0 {
		c.fail(fmt.Errorf("transition %q keeps its answer for %s", c.step.Name, d))
		return
	}
	c.keep = max(c.keep, d)
}

// Because writes the reason into the audit row, in place of the one that the actor gives ([Call.Reason]).
func (c *Call) Because(reason string) { c.reason = reason }

// Goto chooses among the declared targets of the transition; see
// [Transition.Or]. Without it the transition goes to its first target.
func (c *Call) Goto(state State) {
	if slices.Contains(c.targets, state) {
		c.to = state
		return
	}
	c.fail(fmt.Errorf("transition %q goes to %q, which is not among its declared targets", c.step.Name, state))
}

func (c *Call) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}
