package verify

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// walk verifies rows ordered by instance and version.
type walk struct {
	tenant string
	out    inspect.Verification

	id      uuid.UUID
	begun   bool
	broken  bool
	version int64
	chain   []byte // nil: the instance is missing
	seen    int64
	prev    [32]byte
	last    transitions.Entry     // the newest row
	created time.Time             // time of the first row
	stands  decide.Standing       // according to the rows so far
	before  [32]byte              // its digest
	is      *transitions.Instance // according to its own row; known after the first audit row
	illegal string                // a column of its own row that cannot be parsed
}

// stored is an instance's own row, which comes with its first audit row; NULL in others.
type stored struct {
	Workflow, BusinessKey, State    *string
	Definition                      *int
	Data, Attributes, Actors, Links []byte
	Open, Paused                    *bool
	CreatedAt, UpdatedAt            *time.Time
}

// read returns the instance as the engine reads it, and the name of a column with invalid content.
func (s *stored) read() (i *transitions.Instance, illegal string) {
	i = &transitions.Instance{Workflow: *s.Workflow, Definition: *s.Definition, State: workflow.State(*s.State), Data: s.Data,
		Open: *s.Open, Paused: *s.Paused, CreatedAt: *s.CreatedAt, UpdatedAt: *s.UpdatedAt}
	if s.BusinessKey != nil {
		i.BusinessKey = *s.BusinessKey
	}
	for _, column := range []struct {
		name string
		raw  []byte
		into any
	}{{"attributes", s.Attributes, &i.Attributes}, {"actors", s.Actors, &i.Actors}, {"links", s.Links, &i.Links}} {
		if column.raw != nil && json.Unmarshal(column.raw, column.into, json.RejectUnknownMembers(true)) != nil {
			illegal = column.name
		}
	}
	return i, illegal
}

func (v *walk) read(row pgx.Rows) error {
	var (
		id                                     uuid.UUID
		version                                int64
		chain, payloadDigest, dataDigest, hash []byte
		e                                      = transitions.Entry{Tenant: v.tenant}
		from, to                               string
		s                                      stored
	)
	err := row.Scan(&id, &version, &chain, &e.Version, &e.Position, &e.Workflow, &e.Transition, &from, &to, &e.Actor, &e.Reason,
		&e.Payload, &e.Data, &payloadDigest, &dataDigest, &e.Scope, &e.Key, &e.Cause, &e.Proof, &e.At, &hash, &e.Rest, &e.Emitted,
		&s.Workflow, &s.Definition, &s.BusinessKey, &s.State, &s.Data, &s.Attributes, &s.Actors, &s.Links,
		&s.Open, &s.Paused, &s.CreatedAt, &s.UpdatedAt)
	if err != nil {
		return err
	}
	if !v.begun || id != v.id {
		v.finish()
		*v = walk{tenant: v.tenant, out: v.out, id: id, begun: true, version: version, chain: chain}
		v.out.Instances++
	}
	if hash == nil {
		return nil // finish reports an instance without audit rows
	}
	v.out.Entries++
	e.Instance, e.From, e.To = id, workflow.State(from), workflow.State(to)
	v.seen++
	switch {
	case v.broken || chain == nil:
		return nil
	case e.Version != v.seen:
		v.report(v.seen, fmt.Sprintf("the row of version %d is missing", v.seen))
		return nil
	case v.seen == 1:
		v.begin(&e, &s)
	}
	v.check(&e, digest(e.Payload, payloadDigest), digest(e.Data, dataDigest), hash)
	return nil
}

// begin reads what does not change in an instance's life from its own row. The hash of the first
// audit row covers it; each audit row has the version of the definition.
func (v *walk) begin(e *transitions.Entry, s *stored) {
	v.is, v.illegal = s.read()
	if v.created = e.Cause.HappenedAt(); v.created.IsZero() {
		v.created = e.At
	}
	v.stands = decide.Standing{BusinessKey: v.is.BusinessKey, Parent: v.is.Links.Parent, Rest: decide.NoRest}
	if key := v.is.BusinessKey; key != "" && transitions.InstanceID(v.tenant, v.is.Workflow, key) != v.id {
		v.report(1, "the instance's id is not that of its workflow and its business key")
	}
}

func (v *walk) check(e *transitions.Entry, payload, data [32]byte, hash []byte) {
	if v.broken {
		return
	}
	v.stands.Definition = v.is.DefinitionAt(v.seen)
	v.stands.Apply(e, data)
	linked := v.linked(e, payload, hash)
	switch {
	case !linked && v.seen == 1:
		v.report(1, "the row was changed, or the instance's definition, business key or parent was")
	case !linked:
		v.report(v.seen, "the row was changed, or the one before it, or the instance before this transition")
	case e.Position <= v.last.Position:
		v.report(v.seen, fmt.Sprintf("the row's position is %d, but the one before it has %d", e.Position, v.last.Position))
	}
	v.last = *e
}

// linked reports whether the row has the correct hash. Whether the instance was open after the
// transition is only in the hash, not in the row.
func (v *walk) linked(e *transitions.Entry, payload [32]byte, hash []byte) bool {
	for _, v.stands.Open = range [...]bool{true, false} {
		e.Before, e.After = v.before, v.stands.Digest()
		if want := audit.LinkTo(v.prev, e, payload); bytes.Equal(want[:], hash) {
			v.prev, v.before = want, e.After
			return true
		}
	}
	return false
}

func (v *walk) finish() {
	switch {
	case !v.begun || v.broken:
	case v.chain == nil:
		v.report(v.seen, "the instance of these rows is missing")
	case v.seen != v.version:
		v.report(min(v.seen, v.version)+1, fmt.Sprintf("the instance is at version %d, but its last row is of version %d", v.version, v.seen))
	case !bytes.Equal(v.prev[:], v.chain):
		v.report(v.seen, "the instance does not hold the hash of its last row")
	default:
		if strayed := v.strayed(); strayed != "" {
			v.report(v.seen, "the instance's "+strayed+" not what its rows say")
		}
	}
}

// strayed returns a difference between the instance and its rows, with a verb, or "".
func (v *walk) strayed() string {
	switch i, s := v.is, &v.stands; {
	case v.illegal != "":
		return "column " + v.illegal + " is"
	case i.Workflow != v.last.Workflow:
		return "workflow is"
	case i.State != s.State:
		return "state is"
	case sha256.Sum256(i.Data) != s.Data:
		return "data is"
	case i.Open != s.Open:
		return "column open is"
	case i.Paused != s.Paused:
		return "column paused is"
	case decide.Rest(i) != s.Rest:
		return "attributes, actors or effects (in links) are"
	case !s.WaitsFor(i.Links.InFlight, v.id):
		return "command in flight (in links) is"
	case !i.CreatedAt.Equal(v.created):
		return "column created_at is"
	case !i.UpdatedAt.Equal(v.last.At):
		return "column updated_at is"
	}
	return ""
}

func (v *walk) report(version int64, reason string) {
	v.broken = true
	v.out.Broken = append(v.out.Broken, inspect.Break{Instance: v.id, Version: version, Reason: reason})
}

// digest returns the digest of the content, or the one that redaction kept.
func digest(content, kept []byte) [32]byte {
	if content == nil && len(kept) == 32 {
		return [32]byte(kept)
	}
	return sha256.Sum256(content)
}
