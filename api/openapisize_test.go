package api

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/workflow"
)

// catalogue is many workflows with 20 transitions and 5 attributes each.
func catalogue(t testing.TB, n int) (all []*workflow.Workflow) {
	t.Helper()
	for i := range n {
		parts := []workflow.Part[letter]{workflow.Start("write", "s0", func(*workflow.Call, *letter, written) error { return nil })}
		for k := range 19 {
			parts = append(parts, workflow.On(fmt.Sprintf("step-%d-%d", i, k), workflow.From(workflow.State(fmt.Sprintf("s%d", k))),
				workflow.State(fmt.Sprintf("s%d", k+1)), func(*workflow.Call, *letter, signed) error { return nil }))
		}
		d := workflow.Define(fmt.Sprintf("flow-%d", i), 1, parts...).Final("s19")
		for k := range 5 {
			d.Attr(fmt.Sprintf("a-%d-%d", i, k), func(letter) string { return "" })
		}
		w, err := d.Build()
		require.NoError(t, err)
		all = append(all, w)
	}
	return all
}

// A transition adds references to what the document has already, and little else.
func TestOpenAPI_SizeOf200Workflows(t *testing.T) {
	_, one := documentWith(t, catalogue(t, 1)...)
	text, d := documentWith(t, catalogue(t, 200)...)
	assert.Len(t, d.Components.Responses, len(one.Components.Responses), "one workflow has responses, 200 have")
	operations := len(operationsIn(&d))
	size := len(text) / operations
	assert.Truef(t, operations >= 200*39 && size <= 2300, "%d operations have %d bytes each", operations, size)
	packed, err := documentOf([]byte(text))
	assert.Truef(t, err == nil && len(packed.packed) <= 1<<20 && packed.size == len(text),
		"%d bytes are %d as gzip, %v", packed.size, len(packed.packed), err)
}

func BenchmarkOpenAPI_200Workflows(b *testing.B) {
	all := catalogue(b, 200)
	for b.Loop() {
		text, err := openAPI(publicURL{}, Routes(), all, true)
		require.NoError(b, err)
		b.ReportMetric(float64(len(text)), "bytes")
	}
}
