// Floods is the program of the test in this folder: a service whose instances are as large as instances can be.
package main

import (
	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/workflow"
)

// Note is the data of an instance, and the payload of its transitions.
type Note struct {
	Name string `json:"name,omitempty"`
	Text string `json:"text"`
}

const open workflow.State = "open"

func write(_ *workflow.Call, d *Note, p Note) error {
	*d = p
	return nil
}

var note = workflow.Define("note", 1,
	workflow.Start("write", open, write).BusinessKey(func(p Note) string { return p.Name }).
		Receive("hooks", workflow.JSON(func(_ workflow.Message, n Note) (workflow.Address, Note, error) { return workflow.Address{}, n, nil })),
	workflow.On("rewrite", workflow.From(open), open, write),
)

func main() { pawl.Main(note) }
