package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/internal/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// deciders are the workflows by name.
type deciders map[string]*workflow.Workflow

func newDeciders() (deciders, error) {
	by := deciders{}
	for _, source := range loadedWorkflows {
		w, err := source.Build()
		if err != nil {
			return nil, err
		}
		by[w.Name] = w
	}
	return by, nil
}

// decided is one transition of a past: what was asked and what came of it.
type decided struct {
	asked    *decide.Prepared
	decision decide.Decision
	position int64
}

// cohortRows are all rows of a cohort.
type cohortRows struct {
	tenant    string
	steps     []decided
	instances []*transitions.Instance
}

// cohort decides everything that the n-th cohort of a past did, in the order of
// its time: positions count from first.
func (by deciders) cohort(p *past, n int, first int64) (*cohortRows, error) {
	from, end := p.cohortOf(n)
	r := &cohortRows{tenant: p.tenantOf(n), instances: make([]*transitions.Instance, end-from)}
	longest, begun := p.length(from), p.before(from) // the first of a cohort have one more, if any
	for turn := range longest {
		for i := from; i < end; i++ {
			if turn >= p.length(i) {
				continue
			}
			inst := &r.instances[i-from]
			d, err := by.decide(p.command(i, turn), *inst, p.at(begun+len(r.steps)))
			if err != nil {
				return nil, err
			}
			d.position = first + int64(len(r.steps))
			*inst = d.decision.After
			r.steps = append(r.steps, d)
		}
	}
	return r, nil
}

// decide decides a command as the engine does, and links it to the chain.
func (by deciders) decide(c transitions.Command, inst *transitions.Instance, now time.Time) (decided, error) {
	w := by[c.Workflow]
	p, err := decide.Prepare(c, w, uuid.New)
	if err != nil {
		return decided{}, err
	}
	d := decide.Decide(p, w, inst, now)
	if d.Err != nil {
		return decided{}, d.Err
	}
	var before [32]byte
	if inst != nil {
		before = inst.Chain
	}
	d.Entry.Hash = audit.Link(before, &d.Entry)
	d.After.Chain = d.Entry.Hash
	return decided{asked: p, decision: d}, nil
}

// The columns that are loaded, in the order in which the rows are made.
var (
	loadedInstance = []string{"tenant", "id", "workflow", "definition", "business_key", "state", "version", "data", "attributes",
		"paused", "open", "chain", "created_at", "updated_at"}
	loadedCommand = []string{"tenant", "scope", "key", "fingerprint", "status", "workflow", "transition", "instance", "version", "actor",
		"code", "body", "created_at", "finished_at", "expires_at"}
	loadedAudit = []string{"tenant", "instance", "version", "position", "workflow", "transition", "from_state", "to_state", "actor",
		"payload", "data", "scope", "key", "at", "hash", "rest_digest"}
	loadedEvent = []string{"tenant", "position", "type", "ordinal", "workflow", "instance", "version", "transition", "state", "at", "business_key", "attributes"}
)

// copy writes the rows of the cohort. A uuid.UUID is given as the array that it
// is: as a driver.Valuer it would go through its text.
func (r *cohortRows) copy(ctx context.Context, tx pgx.Tx, schemaName string) error {
	for _, t := range []struct {
		table   string
		columns []string
		n       int
		row     func(i int) ([]any, error)
	}{
		{"instance", loadedInstance, len(r.instances), r.instance},
		{"command", loadedCommand, len(r.steps), r.command},
		{"audit", loadedAudit, len(r.steps), r.audit},
		{"outbox", loadedEvent, len(r.steps), r.event},
	} {
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{schemaName, t.table}, t.columns, pgx.CopyFromSlice(t.n, t.row)); err != nil {
			return fmt.Errorf("table %s: %w", t.table, err)
		}
	}
	return nil
}

func (r *cohortRows) instance(n int) ([]any, error) {
	i := r.instances[n]
	attributes, err := attributesJSON(i.Attributes)
	if err != nil {
		return nil, err
	}
	return []any{r.tenant, [16]byte(i.ID), i.Workflow, i.Definition, i.BusinessKey, string(i.State), i.Version, i.Data, attributes,
		i.Paused, i.Open, i.Chain[:], i.CreatedAt, i.UpdatedAt}, nil
}

// attributesJSON are attributes as a column's value, nil for none.
func attributesJSON(m map[string]string) (any, error) {
	if len(m) == 0 {
		return nil, nil
	}
	return json.Marshal(m, json.Deterministic(true))
}

func (r *cohortRows) command(n int) ([]any, error) {
	p, d := r.steps[n].asked, &r.steps[n].decision
	return []any{r.tenant, p.Scope, p.Key, p.Fingerprint[:], string(d.Status), p.Workflow, p.Transition, [16]byte(d.Entry.Instance), d.Entry.Version, p.Actor,
		d.Code, string(d.Body), d.Entry.At, d.Entry.At, d.Entry.At.Add(replayFor)}, nil
}

func (r *cohortRows) audit(n int) ([]any, error) {
	e := &r.steps[n].decision.Entry
	var from any
	if e.From != "" {
		from = string(e.From)
	}
	return []any{r.tenant, [16]byte(e.Instance), e.Version, r.steps[n].position, e.Workflow, e.Transition, from, string(e.To), e.Actor,
		e.Payload, e.Data, e.Scope, e.Key, e.At, e.Hash[:], e.Rest}, nil
}

// event is the one that every transition has; no action of the loaded workflows
// adds another.
func (r *cohortRows) event(n int) ([]any, error) {
	events := r.steps[n].decision.Events
	if len(events) != 1 {
		return nil, fmt.Errorf("a transition with %d events cannot be loaded", len(events))
	}
	e := &events[0]
	attributes, err := attributesJSON(e.Attributes)
	if err != nil {
		return nil, err
	}
	return []any{r.tenant, r.steps[n].position, e.Type, e.Ordinal, e.Workflow, [16]byte(e.Instance), e.Version, e.Transition, string(e.State), e.At,
		e.BusinessKey, attributes}, nil
}
