package commit

import (
	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/internal/rows"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The columns of the tables that the pipeline owns, without the tenant: every
// statement names one.
var (
	createdColumns = []rows.Column{
		rows.Of("id", rows.UUID), rows.Of("workflow", rows.Text), rows.Of("definition", rows.Int4),
		rows.Of("business_key", rows.Text), rows.Of("state", rows.Text), rows.Of("version", rows.Int8),
		rows.Of("data", rows.JSON), rows.Of("attributes", rows.JSONB), rows.Of("duties", rows.JSON),
		rows.Of("open", rows.Bool), rows.Of("chain", rows.Bytea),
		rows.Of("created_at", rows.Timestamptz), rows.Of("updated_at", rows.Timestamptz),
	}
	changedColumns = []rows.Column{
		rows.Of("row", rows.TID), rows.Of("id", rows.UUID), rows.Of("before", rows.Int8), rows.Of("state", rows.Text), rows.Of("version", rows.Int8),
		rows.Of("data", rows.JSON), rows.Of("attributes", rows.JSONB), rows.Of("duties", rows.JSON),
		rows.Of("open", rows.Bool), rows.Of("chain", rows.Bytea), rows.Of("updated_at", rows.Timestamptz),
	}
	commandColumns = []rows.Column{
		rows.Of("scope", rows.Text), rows.Of("key", rows.Text), rows.Of("fingerprint", rows.Bytea),
		rows.Of("status", rows.Text), rows.Of("workflow", rows.Text), rows.Of("transition", rows.Text),
		rows.Of("instance", rows.UUID), rows.Of("version", rows.Int8), rows.Of("actor", rows.Text),
		rows.Of("code", rows.Int2), rows.Of("body", rows.Text), rows.Of("created_at", rows.Timestamptz),
		rows.Of("finished_at", rows.Timestamptz), rows.Of("expires_at", rows.Timestamptz),
	}
)

func addCreated(s *rows.Set, i *transitions.Instance) error {
	s.UUID(i.ID)
	s.Text(i.Workflow)
	s.Int4(i.Definition)
	s.TextOrNull(i.BusinessKey)
	if err := addState(s, i); err != nil {
		return err
	}
	s.Time(i.CreatedAt)
	s.Time(i.UpdatedAt)
	return nil
}

func addChanged(s *rows.Set, slot *slot) error {
	i := slot.inst
	s.TID(slot.row)
	s.UUID(i.ID)
	s.Int8(slot.before)
	if err := addState(s, i); err != nil {
		return err
	}
	s.Time(i.UpdatedAt)
	return nil
}

// addState adds what every transition writes, the columns from state to chain.
func addState(s *rows.Set, i *transitions.Instance) error {
	attributes, err := mapJSON(i.Attributes)
	if err != nil {
		return err
	}
	duties, err := mapJSON(i.Duties)
	if err != nil {
		return err
	}
	s.Text(string(i.State))
	s.Int8(i.Version)
	s.Bytes(i.Data)
	s.JSONB(attributes)
	s.Bytes(duties)
	s.Bool(i.Open)
	s.Bytes(i.Chain[:])
	return nil
}

// mapJSON renders a map; an empty one is NULL.
func mapJSON[V any](m map[string]V) ([]byte, error) {
	if len(m) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(m, json.Deterministic(true))
	if err != nil {
		return nil, &workflow.Error{Code: workflow.Internal, Message: "the workflow's data cannot be encoded", Cause: err}
	}
	return raw, nil
}

func (g *group) addCommand(s *rows.Set, o *op) {
	p, d := o.p, &o.decision
	s.Text(p.Scope)
	s.Text(p.Key)
	s.Bytes(p.Fingerprint[:])
	s.Text(string(d.Status))
	s.Text(p.Workflow)
	s.Text(p.Transition)
	s.UUID(p.Instance)
	s.Int8OrNull(d.Entry.Version)
	s.Text(p.Actor)
	s.Int2(d.Code)
	s.Bytes(d.Body)
	s.Time(g.now)
	s.Time(g.now)
	s.Time(g.now.Add(g.horizon))
}

// instanceSelect are the columns that readInstance reads, of a row named i.
const instanceSelect = `i.id, i.workflow, i.definition, i.business_key, i.state, i.version, i.data, i.attributes, i.duties,
	i.open, i.chain, i.created_at, i.updated_at`

const instanceColumns = 13

// readInstance reads instanceSelect; nil when the row is not there.
func readInstance(r *rows.Row, tenant string) (*transitions.Instance, error) {
	if r.IsNull() {
		r.Skip(instanceColumns)
		return nil, nil
	}
	i := &transitions.Instance{Tenant: tenant, ID: r.UUID(), Workflow: r.Text(), Definition: r.Int4(), BusinessKey: r.Text(),
		State: workflow.State(r.Text()), Version: r.Int8(), Data: r.Bytes()}
	attributes, duties := r.JSONB(), r.Bytes()
	i.Open, i.Chain, i.CreatedAt, i.UpdatedAt = r.Bool(), r.Hash(), r.Time(), r.Time()
	if err := r.Err(); err != nil {
		return nil, err
	}
	if attributes != nil {
		if err := json.Unmarshal(attributes, &i.Attributes); err != nil {
			return nil, err
		}
	}
	if duties != nil {
		if err := json.Unmarshal(duties, &i.Duties); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// recordSelect are the columns that readRecord reads, of a command named c and
// the audit row of its transition, named a.
const recordSelect = `c.scope, c.key, c.fingerprint, c.status, c.workflow, c.transition, c.instance, c.version, c.code, c.body,
	c.created_at, c.finished_at, c.expires_at, a.position`

// readRecord reads recordSelect; nil when the row is not there.
func readRecord(r *rows.Row) *transitions.Record {
	if r.IsNull() {
		return nil
	}
	return &transitions.Record{Scope: r.Text(), Key: r.Text(), Fingerprint: r.Hash(), Status: transitions.Status(r.Text()),
		Workflow: r.Text(), Transition: r.Text(), Instance: r.UUID(), Version: r.Int8(), Code: r.Int2(), Body: r.Bytes(),
		CreatedAt: r.Time(), FinishedAt: r.Time(), ExpiresAt: r.Time(), Position: r.Int8()}
}
