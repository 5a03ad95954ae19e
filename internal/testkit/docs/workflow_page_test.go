package docs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What the page shows of a workflow is what its examples run.
func TestWorkflowPage_Example(t *testing.T) {
	t.Parallel()
	example := page(t, "pawltest/desk_example_test.go") + page(t, "pawltest/payout_example_test.go") +
		page(t, "pawltest/claim_example_test.go")
	for _, block := range blocks(t, page(t, "docs/what-a-workflow-can-say.md"), "go") {
		assert.Contains(t, example, block, "the example does not have")
	}
}
