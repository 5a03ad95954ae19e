package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/definitions"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/schema"
)

// registry is the definitions that this node knows, with what the database is told
// of them.
type registry struct{ *definitions.Set }

// record writes new definitions down, refuses those that have changed under a version
// that ran here before, and tells of versions that ran here before and are not given
// now: the instances that are on them can be read and not changed by this node.
// What is refused leaves nothing behind.
func (r *registry) record(ctx context.Context, c Config) error {
	return pgx.BeginTxFunc(ctx, c.Pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if err := r.insert(ctx, tx, c); err != nil {
			return fmt.Errorf("record definitions: %w", err)
		}
		// A statement of its own: it sees what another node was inserting.
		list, err := r.stored(ctx, tx, schema.In(c.Schema, storedDefinitions+" FOR NO KEY UPDATE"))
		if err != nil {
			return fmt.Errorf("read definitions: %w", err)
		}
		var refused []error
		for i := range list {
			refused = append(refused, r.take(ctx, tx, c, &list[i]))
		}
		return errors.Join(refused...)
	})
}

// take accepts a definition that is written down, or refuses what this node has for it.
func (r *registry) take(ctx context.Context, tx pgx.Tx, c Config, d *storedDefinition) error {
	switch {
	case d.Changed:
		return fmt.Errorf("workflow %q has changed, but is still version %d, which ran here before (%s): give the changed one version %d, "+
			"and keep this one as well for its instances", d.Workflow, d.Version, r.differences(d), d.Version+1)
	case d.Given:
		return d.takeMembers(ctx, tx, c, r.Find(d.Workflow, d.Version))
	case r.Find(d.Workflow, 0) != nil:
		c.Log.Warn("a version of a workflow ran here before and is not given; instances that are on it cannot be changed by this node",
			"workflow", d.Workflow, "version", d.Version)
	}
	return nil
}

// differences tells what about a definition has changed.
func (r *registry) differences(d *storedDefinition) string {
	found, err := r.Find(d.Workflow, d.Version).Differences(d.spec)
	switch {
	case err != nil:
		return err.Error()
	case len(found) == 0:
		return "how a payload is decoded or validated"
	}
	return strings.Join(found, "; ")
}

const storedDefinitions = "SELECT workflow, version, hash, spec::text, created_at, members, builds FROM {pawl}.definition ORDER BY workflow, version"

// stored reads the definitions that have run on the database, in order, and compares them with those of this node.
func (r *registry) stored(ctx context.Context, from store.Querier, sql string) ([]storedDefinition, error) {
	found, err := from.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, func(row pgx.CollectableRow) (d storedDefinition, err error) {
		var hash string
		err = row.Scan(&d.Workflow, &d.Version, &hash, &d.spec, &d.CreatedAt, &d.members, &d.builds)
		if w := r.Find(d.Workflow, d.Version); w != nil {
			d.compare(w, hash)
		}
		d.CreatedAt = d.CreatedAt.UTC()
		return d, err
	})
}

// Definitions tells which versions of workflows have run on the database, by workflow and version, and which of them
// this engine has. It works on an engine that is not started. Error: Unavailable.
func (a *Admin) Definitions(ctx context.Context) ([]inspect.Definition, error) {
	stored, err := a.e.registry.stored(ctx, a.e.config.Pool, schema.In(a.e.config.Schema, storedDefinitions))
	if err != nil {
		return nil, store.ReadError("definitions", err)
	}
	list := make([]inspect.Definition, len(stored))
	for i := range stored {
		list[i] = stored[i].Definition
	}
	return list, nil
}

// insert writes down what is new, in one order on every node.
func (r *registry) insert(ctx context.Context, tx pgx.Tx, c Config) error {
	var names, hashes, specs []string
	var versions []int32
	for _, w := range r.All() {
		spec, err := json.Marshal(w.Describe(), json.Deterministic(true))
		if err != nil {
			return fmt.Errorf("describe workflow %q: %w", w.Name, err)
		}
		names, versions = append(names, w.Name), append(versions, int32(w.Version))
		hashes, specs = append(hashes, w.Hash), append(specs, string(spec))
	}
	_, err := tx.Exec(ctx, schema.In(c.Schema, `INSERT INTO {pawl}.definition (workflow, version, hash, spec)
SELECT u.workflow, u.version, u.hash, u.spec::json
FROM unnest($1::text[], $2::int[], $3::text[], $4::text[]) AS u(workflow, version, hash, spec)
ORDER BY u.workflow COLLATE "C", u.version ON CONFLICT (workflow, version) DO NOTHING`), names, versions, hashes, specs)
	return err
}
