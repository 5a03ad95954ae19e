package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// registry is the definitions that this node knows.
type registry struct {
	newest []*workflow.Workflow // of each name, by name
	byName map[string][]*workflow.Workflow
	routes map[string][]transitions.MessageRoute // of messages, by consumer
	replay time.Duration                         // how long answers are replayed where a workflow does not say it
}

// newRegistry builds every definition and reports the mistakes of all.
func newRegistry(sources []workflow.Source, replay time.Duration) (*registry, error) {
	r := &registry{byName: map[string][]*workflow.Workflow{}, replay: replay}
	var mistakes []error
	for _, s := range sources {
		w, err := s.Build()
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		if r.Find(w.Name, w.Version) != nil {
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
	r.routes = transitions.MessageRoutes(r.newest, func(name string) []*workflow.Workflow { return r.byName[name][1:] })
	return r, nil
}

// Find returns a version of a workflow, the newest for version 0, or nil.
func (r *registry) Find(name string, version int) *workflow.Workflow {
	for _, w := range r.byName[name] {
		if version == 0 || w.Version == version {
			return w
		}
	}
	return nil
}

// Versions are those of a workflow, the newest first; none: it is not known.
func (r *registry) Versions(name string) []*workflow.Workflow { return r.byName[name] }

// names are those of all workflows.
func (r *registry) names() []string {
	names := make([]string, len(r.newest))
	for i, w := range r.newest {
		names[i] = w.Name
	}
	return names
}

// all are the versions of all workflows.
func (r *registry) all() []*workflow.Workflow {
	all := []*workflow.Workflow{}
	for _, w := range r.newest {
		all = append(all, r.byName[w.Name]...)
	}
	return all
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
					"workflow %q has changed, but is still version %d, which ran here before: give the changed one version %d, and this one beside it for the instances that began with it", w.Name, w.Version, w.Version+1))
			}
		}
	}
	return errors.Join(changed...)
}

// warn tells of versions that ran here before and are not given now: the
// instances that began with them can be read and not changed by this node.
func (r *registry) warn(ctx context.Context, c Config) error {
	found, err := c.Pool.Query(ctx, schema.In(c.Schema, "SELECT workflow, version FROM pawl.definition ORDER BY workflow, version"))
	if err != nil {
		return fmt.Errorf("read definitions: %w", err)
	}
	var name string
	var version int
	_, err = pgx.ForEachRow(found, []any{&name, &version}, func() error {
		if r.Find(name, 0) != nil && r.Find(name, version) == nil {
			c.Log.Warn("a version of a workflow ran here before and is not given; instances that began with it cannot be changed by this node",
				"workflow", name, "version", version)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read definitions: %w", err)
	}
	return nil
}
