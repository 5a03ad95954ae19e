package diagram

import (
	"os"
	"testing"

	"github.com/pawlhq/pawl/workflow"
)

type data struct{}

func act(*workflow.Call, *data, workflow.None) error { return nil }

func on(name string, to workflow.State, from ...workflow.State) *workflow.Transition[data, workflow.None] {
	return workflow.On(name, from, to, act)
}

func build(t testing.TB, d *workflow.Definition[data]) *workflow.Workflow {
	t.Helper()
	w, err := d.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// order has five states, a loop back and a way out of three of them.
func order() *workflow.Definition[data] {
	return workflow.Define("order", 1,
		workflow.Start("place", "placed", act).Doc("A customer's cart becomes an order."),
		on("pay", "paid", "placed"),
		on("ship", "shipped", "paid").Role("warehouse"),
		on("return", "placed", "shipped").Role("warehouse", "desk"),
		on("deliver", "delivered", "shipped").Role("carrier"),
		on("cancel", "cancelled", "placed", "paid").NotBy("pay").Guard("not packed", func(*workflow.Call, data) error { return nil }),
	).Final("delivered", "cancelled").Roles("warehouse", "desk", "carrier")
}

// fine is an appeal against a fine: eleven transitions, loops, several arrows
// that are one, targets that the action chooses among.
func fine() *workflow.Definition[data] {
	return workflow.Define("fine", 3,
		workflow.Start("create", "created", act),
		workflow.Start("import", "sent", act).Role("clerk"),
		on("send", "sent", "created").Role("clerk"),
		on("pay", workflow.Stay, "created", "sent", "notified", "penalised").Or("closed"),
		on("notify", "notified", "sent"),
		on("add-penalty", "penalised", "notified"),
		on("appeal-to-prefecture", "appealed", "notified", "penalised").Role("offender"),
		on("appeal-to-judge", "in-court", "notified", "penalised", "appealed").Role("offender"),
		on("decide", "closed", "appealed").Or("penalised").Role("prefect").NotBy("send"),
		on("rule", "closed", "in-court").Or("penalised").Role("judge"),
		on("note", workflow.Stay, "appealed", "in-court").Role("clerk"),
		on("collect", "collected", "penalised").Role("clerk"),
		on("write-off", "closed", "penalised").Role("clerk"),
	).Final("closed", "collected").Roles("clerk", "offender", "prefect", "judge")
}

func TestDraw(t *testing.T) {
	for name, d := range map[string]*workflow.Definition[data]{"order": order(), "fine": fine()} {
		w := build(t, d)
		for dir, suffix := range []string{"td", "lr"} {
			svg, err := SVG(w, Options{Current: w.States[1], Direction: Direction(dir)})
			if err != nil {
				t.Fatal(err)
			}
			os.WriteFile("/tmp/probe/"+name+"-"+suffix+".svg", svg, 0o600)
		}
		os.WriteFile("/tmp/probe/"+name+".dot", []byte(DOT(w, Options{Current: w.States[1]})), 0o600)
		os.WriteFile("/tmp/probe/"+name+".mmd", []byte(Mermaid(w, Options{Current: w.States[1]})), 0o600)
	}
}
