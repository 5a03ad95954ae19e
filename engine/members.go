package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/workflow"
)

// storedDefinition is a row of the table definition.
type storedDefinition struct {
	inspect.Definition
	members map[string]string // of the data, by path, each with its kind; see workflow.Members
	spec    []byte            // what it says, as JSON; see workflow.Description
	builds  []string          // the hashes of the members of the builds that were accepted
}

// compare finds out what a build that has the definition is refused for.
func (d *storedDefinition) compare(w *workflow.Workflow, hash string) {
	d.Given, d.Changed = true, w.Hash != hash
	if d.Changed {
		return // its data is another version's
	}
	if !slices.Contains(d.builds, w.MembersHash()) { // else it keeps what it does not know, and leaves to others what it cannot read
		d.Lacking, d.Unreadable = w.Unlike(d.members)
	}
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
