package cli

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
)

// inJSON are calls of the commands, with -o json each, one after the other on one database. "" is a command that needs something to
// go wrong first: its output is tested in package ops, and here only that it has the flag.
var inJSON = map[string]string{
	"migrate status": "migrate status", "migrate plan": "migrate plan", "migrate up": "migrate up",
	"migrate grants": "migrate grants postgres --dry-run", "doctor": "doctor", "verify": "verify",
	"diagram": "diagram order", "version": "version",
	"keys create": "", "keys list": "keys list", "keys rotate": "", "keys revoke": "", "tickets rotate": "tickets rotate --drop",
	"submit": `submit order place {"customer":"c","cart":"1","total":1,"currency":"EUR"}`, "get": "get order#c:1", "list": "list",
	"history": "history order#c:1", "children": "children order#c:1", "can": "can order#c:1", "tail": "tail --after start -n 1", "watch": "",
	"auth can-i": "",
	"ops counts": "ops counts", "ops keys": "ops keys", "ops show": "ops show c:1", "ops stuck": "ops stuck", "ops commands": "ops commands",
	"ops retry": "", "ops resolve": "", "ops abandon": "",
	"ops pause": "ops pause order", "ops resume": "ops resume order", "ops paused": "ops paused",
	"ops sinks list": "ops sinks list", "ops sinks show": "", "ops sinks pause": "", "ops sinks resume": "", "ops sinks forget": "",
	"ops sinks move": "", "ops sinks dead": "", "ops sinks redrive": "", "ops sinks skip": "",
	"ops inbox list": "ops inbox list", "ops inbox body": "", "ops inbox retry": "", "ops inbox discard": "",
	"ops inbox kept": "ops inbox kept", "ops inbox raw": "",
	"ops nodes":     "ops nodes",
	"ops retention": "ops retention", "ops versions": "ops versions", "ops begin": "ops begin order 1",
	"ops migrations": "ops migrations", "ops migrate": "", "ops stop-migration": "", "ops correct": "",
}

// serves is the command that has no answer.
const serves = "serve"

// leaves calls a function with each command that does something, by its path.
func leaves(c *cobra.Command, path string, found func(path string, c *cobra.Command)) {
	for _, child := range c.Commands() {
		leaves(child, strings.TrimSpace(path+" "+child.Name()), found)
	}
	if c.Runnable() && !c.HasSubCommands() {
		found(path, c)
	}
}

func TestEveryCommandAnswersInJSON(t *testing.T) {
	p := onDatabaseOf(t)
	p.gets(inJSON["submit"]) // before those that show it
	known := map[string]bool{}
	leaves(CommandLine(), "", func(path string, c *cobra.Command) {
		known[path] = true
		if path == serves {
			return
		}
		call, is := inJSON[path]
		assert.Truef(t, is && c.Flag("output") != nil, "%s: in the table: %t; the flag is %v", path, is, c.Flag("output"))
		if call == "" {
			return
		}
		_, stdout, stderr := p.calls(append(strings.Fields(call), "-o", "json")...)
		values := 0
		for d := json.NewDecoder(strings.NewReader(stdout)); ; values++ {
			var v any
			if err := d.Decode(&v); err == io.EOF && values > 0 {
				break
			} else if err != nil {
				t.Errorf("%s: %v in %q, %s", call, err, stdout, stderr)
				break
			}
		}
	})
	for path := range inJSON {
		assert.Truef(t, known[path], "there is no command %q", path)
	}
}
