package workflow_test

import (
	"fmt"
	"time"

	"github.com/pawlhq/pawl/workflow"
)

// A refund is asked for again for days, and must never happen twice.
func ExampleDefinition_Keep() {
	refunds := workflow.Define("refund", 1,
		workflow.Start("pay-back", "paid-back", func(*workflow.Call, *struct{}, workflow.None) error { return nil }),
	).Final("paid-back").Keep(workflow.Horizons{Replay: 7 * 24 * time.Hour, Tombstone: workflow.Forever})

	w := must(refunds.Build())
	fmt.Println("replayed for", w.Horizons.Replay, "and refused for ever:", w.Horizons.Tombstone == workflow.Forever)
	// Output: replayed for 168h0m0s and refused for ever: true
}
