package diagram_test

import (
	"fmt"

	"github.com/pawlhq/pawl/workflow"
	"github.com/pawlhq/pawl/workflow/diagram"
)

func ExampleMermaid() {
	type Order struct{}
	step := func(*workflow.Call, *Order, workflow.None) error { return nil }
	w, err := workflow.Define("order", 1,
		workflow.Start("place", "placed", step),
		workflow.On("pay", workflow.From("placed"), "paid", step).Or(workflow.Stay),
		workflow.On("ship", workflow.From("paid"), "shipped", step).Role("warehouse"),
	).Final("shipped").Roles("warehouse").Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(diagram.Mermaid(w, diagram.Options{Direction: diagram.LeftRight}))
	// Output:
	// stateDiagram-v2
	//     accTitle: order, version 1
	//     direction LR
	//     [*] --> placed : place
	//     placed --> paid : pay
	//     placed --> placed : pay
	//     paid --> shipped : ship [warehouse]
	//     shipped --> [*]
}
