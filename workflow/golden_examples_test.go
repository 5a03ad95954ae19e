package workflow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/workflow"
)

func TestExamplesAreFrozen(t *testing.T) {
	all := ""
	for _, build := range []func() (*workflow.Workflow, error){
		order.Workflow(nil).Build, fines.Workflow.Build, fines.Version2.Build,
	} {
		w, err := build()
		require.NoError(t, err)
		all += workflow.DescribeFrozen(t, w)
	}
	workflow.CompareGolden(t, "testdata/examples.txt", all)
}
