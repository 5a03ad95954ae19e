package ops_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/inspect"
)

func TestOpsCountsShowsHowManyInstancesThereAre(t *testing.T) {
	p := newProgram(t)
	p.orders(3)
	p.script(`UPDATE pawl.instance SET state = 'shipped', open = true WHERE id IN (SELECT id FROM pawl.instance LIMIT 1)`)
	wantTable(t, p.run("counts"), `
workflow  version  state      open   count
order           1  cancelled  false      2
order           1  shipped    true       1
all                                      3`)
	for args, want := range map[string]int64{
		"":                                       3,
		"--workflow order --definition 1 --open": 1,
		"--open=false":                           2,
		"--state cancelled --state shipped":      3,
		"--definition 2":                         0,
		"--tenant other":                         0,
		"--tenant default --workflow order --open": 1,
	} {
		var c inspect.Counts
		err := json.Unmarshal([]byte(p.run("counts -o json "+args)), &c)
		assert.Truef(t, err == nil && c.Exact && c.Total == want, "%s: %+v, %v", args, c, err)
	}
	p.fails("counts --definition 0", "--definition")
	p.fails("counts --definition 5000000000", "definition")
	p.fails("counts --open=maybe", "--open")
	p.fails("counts --workflow nothing", "nothing")
	p.fails("counts orders", "orders")
}
