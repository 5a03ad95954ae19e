package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

// onDatabaseOf calls commands on a database of its own, without a server.
func onDatabaseOf(t *testing.T) *person {
	t.Helper()
	p := &person{t: t, database: pgtest.URL(t)}
	p.gets("migrate up")
	return p
}

// The commands that ask a server do the same on a database, and those that only look write nothing.
func TestCommandsForPeopleWorkOnADatabase(t *testing.T) {
	p := onDatabaseOf(t)
	assert.Equal(t, "{\n  \"instances\": []\n}\n", p.gets("list -o json"))
	p.fails("get order#c-1:k-1", 5, "instance_not_found")
	assert.Equal(t, 0, p.count("SELECT count(*) FROM pawl.definition"), "to look has written definitions")

	assert.Contains(t, p.places("k-1", "--key", "cart-1", "--actor", "ann"), "placed, version 1")
	assert.Contains(t, p.places("k-1", "--key", "cart-1", "--actor", "ann"), "replayed    it was done before")
	assert.Contains(t, p.gets("get order#c-1:k-1"), "placed (open), version 1")
	assert.Len(t, read[wire.InstancePage](p, "list --state placed -o json").Instances, 1)
	list := read[wire.History](p, "history order#c-1:k-1 -o json").Entries
	assert.Truef(t, len(list) == 1 && list[0].Actor == "ann", "%+v", list)
	o := read[client.Options](p, "can order#c-1:k-1 cancel -o json")
	assert.Truef(t, len(o.Transitions) == 1 && o.Transitions[0].Allowed, "%+v", o)
	assert.Contains(t, p.gets("tail --after start -n 1"), "order#c-1:k-1  place: - -> placed, by ann")
	p.fails("list --tenant other --workflow letter", 5, "workflow_not_found")
}

// What takes time is for the nodes that serve.
func TestDatabaseCommandsLeaveActivitiesToNodes(t *testing.T) {
	p := onDatabaseOf(t)
	p.places("k-1")
	assert.Contains(t, p.gets(`submit order#c-1:k-1 pay {"method":"card"} --scope till --key pay-1`), "in flight")
	serving(t, func(c *service.Config) { c.Database = p.database })
	assert.Contains(t, p.gets("watch till pay-1"), "paid, version 3")
}

// A program without the workflow can look, and says who can do more.
func TestACommandOnADatabaseNeedsItsWorkflow(t *testing.T) {
	p := onDatabaseOf(t)
	p.places("k-1")
	id := idOf(p, "order#c-1:k-1")
	nothing := func(*workflow.Call, *struct{}, workflow.None) error { return nil }
	others := []workflow.Source{workflow.Define("letter", 1, workflow.Start("write", "done", nothing)).Final("done")}
	for args, want := range map[string]string{
		"submit order place {}":          "use the program that has this one, or ask a server (--server)",
		"submit " + id + " cancel {}":    "use the program that has this one, or ask a server (--server)",
		"submit lettre write":            "did you mean letter?; on a database this program decides the command",
		"submit letter write --server x": "--server and --database: give one of them",
	} {
		code, stdout, stderr := runOver(t.Context(), others, append(strings.Fields(args), "--database", p.database)...)
		assert.Truef(t, code != 0 && stdout == "" && strings.Contains(stderr, want), "%s: exit %d, %s%s", args, code, stdout, stderr)
	}
	code, stdout, stderr := runOver(t.Context(), others, "get", id, "--database", p.database)
	assert.Truef(t, code == 0 && strings.Contains(stdout, "placed (open)"), "exit %d, %s%s", code, stdout, stderr)
}
