package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/decide"
	"github.com/pawlhq/pawl/internal/definitions"
	"github.com/pawlhq/pawl/schema"
)

// registry is the definitions that this node knows, with what the database is told
// of them.
type registry struct {
	*definitions.Set
	routes map[string][]decide.MessageRoute // of messages, by consumer
}

// record writes new definitions down and refuses one that has changed under a
// version that ran here before.
func (r *registry) record(ctx context.Context, pool *pgxpool.Pool, schemaName string) error {
	var changed []error
	for _, w := range r.All() {
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
				"workflow %q has changed, but is still version %d, which ran here before: give the changed one version %d, "+
					"and this one beside it for the instances that began with it", w.Name, w.Version, w.Version+1))
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
