package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/workflow"
)

// registry is the definitions that this node knows.
type registry struct {
	newest []*workflow.Workflow // of each name, by name
	byName map[string][]*workflow.Workflow
}

// newRegistry builds every definition and reports the mistakes of all.
func newRegistry(sources []workflow.Source) (*registry, error) {
	r := &registry{byName: map[string][]*workflow.Workflow{}}
	var mistakes []error
	for _, s := range sources {
		w, err := s.Build()
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		if r.find(w.Name, w.Version) != nil {
			mistakes = append(mistakes, fmt.Errorf("workflow %q version %d is given twice", w.Name, w.Version))
			continue
		}
		r.byName[w.Name] = append(r.byName[w.Name], w)
	}
	if len(mistakes) > 0 {
		return nil, errors.Join(mistakes...)
	}
	for _, versions := range r.byName {
		slices.SortFunc(versions, func(a, b *workflow.Workflow) int { return b.Version - a.Version })
		r.newest = append(r.newest, versions[0])
	}
	slices.SortFunc(r.newest, func(a, b *workflow.Workflow) int { return strings.Compare(a.Name, b.Name) })
	return r, nil
}

// find returns a version of a workflow, the newest for version 0, or nil.
func (r *registry) find(name string, version int) *workflow.Workflow {
	for _, w := range r.byName[name] {
		if version == 0 || w.Version == version {
			return w
		}
	}
	return nil
}

// record writes new definitions down and refuses one that has changed under a
// version that ran here before.
func (r *registry) record(ctx context.Context, pool *pgxpool.Pool, schemaName string) error {
	var changed []error
	for _, versions := range r.byName {
		for _, w := range versions {
			spec, err := json.Marshal(w.Describe(), json.Deterministic(true))
			if err != nil {
				return fmt.Errorf("describe workflow %q: %w", w.Name, err)
			}
			_, err = pool.Exec(ctx, schema.In(schemaName, `INSERT INTO pawl.definition (workflow, version, hash, spec) VALUES ($1, $2, $3, $4)
				ON CONFLICT (workflow, version) DO NOTHING`), w.Name, w.Version, w.Hash, string(spec))
			var hash string
			if err == nil { // a statement of its own: it sees what another node was inserting
				err = pool.QueryRow(ctx, schema.In(schemaName, `SELECT hash FROM pawl.definition WHERE workflow = $1 AND version = $2`),
					w.Name, w.Version).Scan(&hash)
			}
			if err != nil {
				return fmt.Errorf("record workflow %q: %w", w.Name, err)
			}
			if hash != w.Hash {
				changed = append(changed, fmt.Errorf(
					"workflow %q has changed, but is still version %d, which instances here began with: give it a new version", w.Name, w.Version))
			}
		}
	}
	return errors.Join(changed...)
}
