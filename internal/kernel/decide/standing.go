package decide

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Standing is the part of an instance that decides what can be done with it. Its digest enters the hashes of two audit rows: that of its
// transition and the next, for which it is computed again from the stored instance. So a change between two transitions breaks the chain,
// even if overwritten.
type Standing struct {
	Definition int

	// For the instance's life:
	BusinessKey string
	Parent      *transitions.Parent

	State        workflow.State
	Data         [32]byte                // its SHA-256
	Rest         [32]byte                // see Rest
	Working      *transitions.CommandRef // the command whose activity is in flight; its transition is in the digest
	Open, Paused bool

	accepted int64 // the version that its transition made, where known
}

// StandingOf returns the standing of an instance.
func StandingOf(i *transitions.Instance) Standing {
	return Standing{Definition: i.Definition, BusinessKey: i.BusinessKey, Parent: i.Links.Parent, State: i.State,
		Data: sha256.Sum256(i.Data), Rest: Rest(i), Working: i.Links.InFlight, Open: i.Open, Paused: i.Paused}
}

// Apply applies a transition from its audit row. data is the SHA-256 of the row's data. The row does not contain Open.
func (s *Standing) Apply(e *transitions.Entry, data [32]byte) {
	if name, begins := strings.CutSuffix(e.Transition, accepted); begins {
		s.Working, s.accepted = &transitions.CommandRef{Transition: name, Scope: e.Scope, Key: e.Key}, e.Version
	} else if e.To != e.From && e.Transition != migratedEntry {
		s.Working = nil
	}
	switch e.Transition {
	case PausedEntry:
		s.Paused = true
	case resumedEntry:
		s.Paused = false
	}
	if len(e.Rest) == 32 {
		s.Rest = [32]byte(e.Rest)
	}
	s.State, s.Data = e.To, data
}

// WaitsFor reports whether the instance waits for the command b (nil for none), or for b as retention's replacement; see LateScope.
func (s *Standing) WaitsFor(b *transitions.CommandRef, instance uuid.UUID) bool {
	if b == nil || s.Working == nil {
		return b == s.Working
	}
	return *b == *s.Working || *b == transitions.CommandRef{Transition: s.Working.Transition,
		Scope: LateScope + instance.String(), Key: strconv.FormatInt(s.accepted, 10)}
}

// Digest returns the SHA-256 of the standing, as pawl.standing in SQL does.
func (s *Standing) Digest() [32]byte {
	b := make([]byte, 0, 256)
	b = binary.BigEndian.AppendUint32(b, uint32(s.Definition))
	b = append(b, flag(s.Open), flag(s.Paused))
	b = append(b, s.Data[:]...)
	b = append(b, s.Rest[:]...)
	var working string
	if s.Working != nil {
		working = s.Working.Transition
	}
	var parent [3]string
	if s.Parent != nil {
		parent = [...]string{s.Parent.Workflow, s.Parent.Instance.String(), s.Parent.End}
	}
	for _, field := range [...]string{s.BusinessKey, string(s.State), working, parent[0], parent[1], parent[2]} {
		b = appendField(b, field)
	}
	return sha256.Sum256(b)
}

func flag(is bool) byte {
	if is {
		return 1
	}
	return 0
}

// NoRest is the Rest of an instance without attributes, actors and effects.
var NoRest = restOf(nil, nil, nil)

// Rest returns the SHA-256 of the instance's attributes, actors and effects, as pawl.rest in SQL does; actors and effects enter as stored
// JSON.
func Rest(i *transitions.Instance) [32]byte {
	if len(i.Attributes) == 0 && len(i.Actors) == 0 && len(i.Links.Effects) == 0 {
		return NoRest
	}
	var attributes, actors, effects []byte
	for _, name := range slices.Sorted(maps.Keys(i.Attributes)) {
		attributes = appendField(appendField(attributes, name), i.Attributes[name])
	}
	if len(i.Actors) > 0 {
		actors = asStored(i.Actors)
	}
	if len(i.Links.Effects) > 0 {
		effects = asStored(i.Links.Effects)
	}
	return restOf(attributes, actors, effects)
}

func restOf(attributes, actors, effects []byte) [32]byte {
	var b []byte
	for _, part := range [...][]byte{attributes, actors, effects} {
		b = appendField(b, string(part))
	}
	return sha256.Sum256(b)
}

// asStored returns the JSON of a part of an instance as stored.
func asStored(part any) []byte {
	raw, err := json.Marshal(part, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("decide: an instance has nothing that JSON cannot say: " + err.Error())
	}
	return raw
}

func appendField(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// EmittedDigest returns the SHA-256 of the type and payload of the events emitted by an action, or nil without any. events are all events
// of the transition; the first is its own.
func EmittedDigest(events []transitions.Event) []byte {
	if len(events) < 2 {
		return nil
	}
	var b []byte
	for i := range events[1:] {
		e := &events[1+i]
		b = appendField(appendField(b, e.Type), string(e.Payload))
	}
	sum := sha256.Sum256(b)
	return sum[:]
}

// setStanding completes the audit row with the digests of the instance before (nil for a creation) and after the transition.
func (d *Decision) setStanding(before *transitions.Instance) {
	if d.After == nil {
		return
	}
	was, rest := [32]byte{}, NoRest
	if before != nil {
		s := StandingOf(before)
		was, rest = s.Digest(), s.Rest
	}
	is := StandingOf(d.After)
	d.Entry.Before, d.Entry.After, d.Entry.Rest = was, is.Digest(), nil
	if is.Rest != rest {
		d.Entry.Rest = is.Rest[:]
	}
	d.Entry.Emitted = EmittedDigest(d.Events)
}
