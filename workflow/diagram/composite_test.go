package diagram_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/workflow"
	"github.com/pawlhq/pawl/workflow/diagram"
)

func TestCompositeStates(t *testing.T) {
	nothing := func(*workflow.Call, *struct{}, workflow.None) error { return nil }
	w, err := workflow.Define("claim", 1,
		workflow.Start("file", "checking", nothing),
		workflow.On("documents", workflow.From("wanted"), "ok", nothing),
		workflow.On("score", workflow.From("unscored"), "cleared", nothing),
		workflow.On("suspend", workflow.From("checking"), "suspended", nothing),
		workflow.On("resume", workflow.From("suspended"), workflow.Last("checking"), nothing),
	).
		Regions("checking", workflow.Region("papers", "wanted", "ok").Done("ok"), workflow.Region("fraud", "unscored", "cleared").Done("cleared")).
		Joined("checking", workflow.All, "paid", func(*workflow.Call, *struct{}) error { return nil }).
		Final("paid").Build()
	require.NoError(t, err)
	options := diagram.Options{Current: "checking(ok,unscored)"}
	mermaid := diagram.Mermaid(w, options)
	assert.Contains(t, mermaid, `
    state checking {
        [*] --> wanted
        wanted
        ok
        --
        [*] --> unscored
        unscored
        cleared
    }
`)
	assert.Contains(t, mermaid, "suspended --> checking : resume to the last states\n")
	assert.Contains(t, mermaid, "checking --> paid : checking_joined\n")
	assert.Contains(t, mermaid, "class checking current\n    class ok current\n    class unscored current\n")
	dot := diagram.DOT(w, options)
	assert.Contains(t, dot, `
    subgraph "cluster checking" {
        "checking" [fillcolor="#fde68a", color="#b45309", penwidth=2]
        subgraph "cluster checking papers wanted" {
            label="papers"; style=dashed
            "wanted"
            "ok" [fillcolor="#fde68a", color="#b45309", penwidth=2]
        }
`)
	svg, err := diagram.SVG(w, options)
	require.NoError(t, err)
	assert.Contains(t, string(svg), "inside checking is one of [wanted ok]")
	assert.Contains(t, string(svg), "the instance is in checking(ok,unscored)")
}
