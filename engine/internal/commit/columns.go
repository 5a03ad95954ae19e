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
		rows.Of("data", rows.JSON), rows.Of("attributes", rows.JSONB), rows.Of("actors", rows.JSON),
		rows.Of("links", rows.JSON), rows.Of("paused", rows.Bool), rows.Of("open", rows.Bool), rows.Of("chain", rows.Bytea),
		rows.Of("created_at", rows.Timestamptz), rows.Of("updated_at", rows.Timestamptz),
	}
	changedColumns = []rows.Column{
		rows.Of("row", rows.TID), rows.Of("id", rows.UUID), rows.Of("before", rows.Int8), rows.Of("state", rows.Text), rows.Of("version", rows.Int8),
		rows.Of("data", rows.JSON), rows.Of("attributes", rows.JSONB), rows.Of("actors", rows.JSON),
		rows.Of("links", rows.JSON), rows.Of("paused", rows.Bool), rows.Of("open", rows.Bool), rows.Of("chain", rows.Bytea), rows.Of("updated_at", rows.Timestamptz),
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
	actors, err := mapJSON(i.Actors)
	if err != nil {
		return err
	}
	links, err := linksJSON(&i.Links)
	if err != nil {
		return err
	}
	s.Text(string(i.State))
	s.Int8(i.Version)
	s.Bytes(i.Data)
	s.JSONB(attributes)
	s.Bytes(actors)
	s.Bytes(links)
	s.Bool(i.Paused)
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

// linksJSON renders an instance's links; none are NULL.
func linksJSON(l *transitions.Links) ([]byte, error) {
	if l.InFlight == nil && l.Effects == nil && l.Parent == nil {
		return nil, nil
	}
	raw, err := json.Marshal(l, json.Deterministic(true))
	if err != nil {
		return nil, &workflow.Error{Code: workflow.Internal, Message: "the instance's links cannot be encoded", Cause: err}
	}
	return raw, nil
}

// instanceSelect are the columns that readInstance reads, of a row named i.
const instanceSelect = `i.id, i.workflow, i.definition, i.business_key, i.state, i.version, i.data, i.attributes, i.actors,
	i.links, i.paused, i.open, i.chain, i.created_at, i.updated_at`

const instanceColumns = 15

// readInstance reads instanceSelect; nil when the row is not there.
func readInstance(r *rows.Row, tenant string) (*transitions.Instance, error) {
	if r.IsNull() {
		r.Skip(instanceColumns)
		return nil, nil
	}
	i := &transitions.Instance{Tenant: tenant, ID: r.UUID(), Workflow: r.Text(), Definition: r.Int4(), BusinessKey: r.Text(),
		State: workflow.State(r.Text()), Version: r.Int8(), Data: r.Bytes()}
	attributes, actors, links := r.JSONB(), r.Bytes(), r.Bytes()
	i.Paused = r.Bool()
	i.Open, i.Chain, i.CreatedAt, i.UpdatedAt = r.Bool(), r.Hash(), r.Time(), r.Time()
	if err := r.Err(); err != nil {
		return nil, err
	}
	if attributes != nil {
		if err := json.Unmarshal(attributes, &i.Attributes); err != nil {
			return nil, err
		}
	}
	if actors != nil {
		if err := json.Unmarshal(actors, &i.Actors); err != nil {
			return nil, err
		}
	}
	if links != nil {
		if err := json.Unmarshal(links, &i.Links); err != nil {
			return nil, err
		}
	}
	return i, nil
}
