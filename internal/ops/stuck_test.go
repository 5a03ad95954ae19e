package ops_test

import (
	"encoding/json"
	"testing"

	"github.com/pawlhq/pawl/transitions"
)

func TestOpsStuckListsWhatWaitsForAPerson(t *testing.T) {
	p := trouble(t)
	wantTable(t, p.run("stuck"), `
since                 scope                                       key    workflow  transition  why         failures  failure
(a time in UTC)       order:(its id)                              asked  order     pay         ask_person         6  nobody knows whether it was charged`)
	var list []struct {
		Scope, Key, Effect string
		Status             transitions.Status
	}
	if err := json.Unmarshal([]byte(p.run("stuck --json --workflow order")), &list); err != nil || len(list) != 1 || list[0].Key != "asked" || list[0].Status != transitions.FailedRetryable ||
		list[0].Effect != transitions.EffectKey(transitions.Ref{Tenant: transitions.DefaultTenant, Scope: list[0].Scope, Key: "asked"}) {
		t.Errorf("%+v, %v", list, err)
	}
	if got := p.run("stuck --json --tenant other"); got != "[]\n" {
		t.Error(got)
	}
	p.fails("stuck --workflow ordre", "workflow_not_found")
}
