package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/definitions"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/workflow"
)

// registry is the definitions that this node knows, with what the database is told of them.
type registry struct{ *definitions.Set }

// record writes new definitions down, refuses those that have changed under a version that ran here before, and tells of versions that ran
// here before and are not given now: the instances that are on them can be read and not changed by this node. What is refused leaves
// nothing behind.
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
		found, err := r.Find(d.Workflow, d.Version).Differences(d.spec)
		if err != nil {
			found = []string{err.Error()}
		} else if len(found) == 0 {
			found = []string{"how a payload is decoded or validated"}
		}
		return fmt.Errorf("workflow %q has changed, but is still version %d, which ran here before (%s): give the changed one version %d, "+
			"and keep this one as well for its instances", d.Workflow, d.Version, strings.Join(found, "; "), d.Version+1)
	case d.Given:
		return d.takeMembers(ctx, tx, c, r.Find(d.Workflow, d.Version))
	case r.Find(d.Workflow, 0) != nil:
		c.Log.Warn("a version of a workflow ran here before and is not given; instances that are on it cannot be changed by this node",
			"workflow", d.Workflow, "version", d.Version)
	}
	return nil
}

const storedDefinitions = "SELECT workflow, version, hash, spec::text, created_at, members, builds FROM {pawl}.definition " +
	"ORDER BY workflow, version"

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
			d.Given, d.Changed = true, w.Hash != hash // the data of a changed one is another version's
			// An accepted build keeps members that it does not know, and leaves data that it cannot read to other nodes.
			if !d.Changed && !slices.Contains(d.builds, w.MembersHash()) {
				d.Lacking, d.Unreadable = w.Unlike(d.members)
			}
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

// storedDefinition is a row of the table definition.
type storedDefinition struct {
	inspect.Definition
	members map[string]string // of the data, by path, each with its kind; see workflow.Members
	spec    []byte            // what it says, as JSON; see workflow.Description
	builds  []string          // the hashes of the members of the builds that were accepted
}

// takeMembers accepts or refuses the data type of a build. It refuses a member that the build may not be able to read, and a missing member
// unless the build ran here before. Such a build keeps members that it does not know, and leaves data that it cannot read to other nodes. A
// new build would do so permanently and without notice.
func (d *storedDefinition) takeMembers(ctx context.Context, tx pgx.Tx, c Config, w *workflow.Workflow) error {
	build := w.MembersHash()
	known := slices.Contains(d.builds, build)
	var refused []error
	refuse := func(what string, members []string) {
		refused = append(refused, fmt.Errorf("workflow %q version %d %s: %s; give the changed one version %d and keep this one as well, "+
			"or say with DataChanged that it is meant", w.Name, w.Version, what, strings.Join(members, ", "), w.Version+1))
	}
	if len(d.Unreadable) > 0 {
		refuse("stores members that this build may not be able to read", d.Unreadable)
	}
	if len(d.Lacking) > 0 {
		refuse("stores members that this build's data does not have (removed, or renamed)", d.Lacking)
	}
	if len(refused) > 0 {
		return errors.Join(refused...)
	}
	if lacking, _ := w.Unlike(d.members); len(lacking) > 0 {
		c.Log.Info("another build has added members to the data of a workflow; this one keeps them as they are",
			"workflow", w.Name, "version", w.Version, "members", strings.Join(lacking, ", "))
	}
	all := w.Recorded(d.members)
	if known && maps.Equal(all, d.members) {
		return nil
	}
	text, err := json.Marshal(all, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encode the members of workflow %q: %w", w.Name, err)
	}
	if !known {
		d.builds = append(d.builds, build)
	}
	sql := schema.In(c.Schema, "UPDATE {pawl}.definition SET members = $3::json, builds = $4 WHERE workflow = $1 AND version = $2")
	if _, err := tx.Exec(ctx, sql, w.Name, w.Version, string(text), d.builds); err != nil {
		return fmt.Errorf("record the members of workflow %q: %w", w.Name, err)
	}
	return nil
}

// recordHorizons tells the database, for retention and for callers that speak only SQL. What is written there only grows, whatever version
// says it: how long a key is refused is taken from there when its answer expires, so a node that says less than another, if only for a
// moment, would break what that one has promised.
func (r *registry) recordHorizons(ctx context.Context, c Config) error {
	names, own := r.Names(), map[string]workflow.Horizons{}
	replays, tombstones, histories := make([]int64, len(names)), make([]*int64, len(names)), make([]*int64, len(names))
	for i, name := range names {
		h := r.Horizons(name)
		replays[i], tombstones[i], histories[i] = h.Replay.Microseconds(), microseconds(h.Tombstone), microseconds(h.History)
		own[name] = workflow.Horizons{Replay: durationOf(&replays[i]), Tombstone: durationOf(tombstones[i]), History: durationOf(histories[i])}
	}
	err := pgx.BeginTxFunc(ctx, c.Pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, schema.In(c.Schema, store.NewHorizonsSQL), names, replays, tombstones, histories); err != nil {
			return err
		}
		found, err := tx.Query(ctx, schema.In(c.Schema, store.KnownHorizonsSQL), names)
		if err != nil {
			return err
		}
		list, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (k recorded, err error) {
			var replay, tombstone, history *int64
			err = row.Scan(&k.workflow, &replay, &tombstone, &history)
			k.Replay, k.Tombstone, k.History = durationOf(replay), durationOf(tombstone), durationOf(history)
			return k, err
		})
		if err != nil {
			return err
		}
		for _, known := range list {
			if err := known.grow(ctx, tx, c, own[known.workflow]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record horizons: %w", err)
	}
	return nil
}

// recorded are the horizons of a workflow that are written down, without the bounds of what a command may ask for.
type recorded struct {
	workflow string
	workflow.Horizons
}

// grow writes down where own, which a node says, is more.
func (k recorded) grow(ctx context.Context, tx pgx.Tx, c Config, own workflow.Horizons) error {
	grown := workflow.Horizons{Replay: max(k.Replay, own.Replay), Tombstone: max(k.Tombstone, own.Tombstone),
		History: max(k.History, own.History)}
	if grown != k.Horizons {
		c.Log.Warn("the horizons of a workflow grew, because this node says more than what was written down; "+
			"keys that are tombstones already stay as long as they did",
			"workflow", k.workflow, "was", told(k.Horizons), "is", told(grown))
		if _, err := tx.Exec(ctx, schema.In(c.Schema, store.GrowHorizonsSQL), k.workflow,
			grown.Replay.Microseconds(), microseconds(grown.Tombstone), microseconds(grown.History)); err != nil {
			return err
		}
	}
	if grown != own {
		c.Log.Warn("this node says less of the horizons of a workflow than what is written down, which holds; "+
			"docs/operations.md tells how to make them shorter",
			"workflow", k.workflow, "this node", told(own), "is", told(grown))
	}
	return nil
}

// told is horizons as the log says them.
func told(h workflow.Horizons) string {
	say := func(d time.Duration) string {
		if d == workflow.Forever {
			return "forever"
		}
		return d.String()
	}
	return fmt.Sprintf("replay %s, tombstone %s, history %s", say(h.Replay), say(h.Tombstone), say(h.History))
}

// microseconds is nil for ever.
func microseconds(d time.Duration) *int64 {
	if d == workflow.Forever {
		return nil
	}
	n := d.Microseconds()
	return &n
}

// durationOf is the inverse. A value that a Duration cannot hold means no limit.
func durationOf(n *int64) time.Duration {
	if n == nil || *n > workflow.Forever.Microseconds() {
		return workflow.Forever
	}
	return time.Duration(*n) * time.Microsecond
}
