package ops_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
)

func TestOpsStuckListsWhatWaitsForAnOperator(t *testing.T) {
	p := trouble(t)
	wantTable(t, p.run("stuck"), `
since                 workflow  business key  transition  scope                                       key    why         failures  failure
(a time in UTC)       order     c:0           pay         order:(its id)                              asked  ask_person         6  nobody knows whether it was charged`)
	var page struct {
		Commands []struct {
			Scope, Key, Effect string
			Status             transitions.Status
		}
	}
	require.NoError(t, json.Unmarshal([]byte(p.run("stuck -o json --workflow order")), &page))
	if list := page.Commands; len(list) != 1 || list[0].Key != "asked" || list[0].Status != transitions.FailedRetryable ||
		list[0].Effect != transitions.EffectKey(transitions.Ref{Tenant: transitions.DefaultTenant, Scope: list[0].Scope, Key: "asked"}) {
		t.Errorf("%+v", list)
	}
	assert.Equal(t, "{\n  \"commands\": []\n}\n", p.run("stuck -o json --tenant other"))
	assert.Contains(t, p.run("stuck --workflow order --business-key c:0"), " asked ")
	assert.Equal(t, "{\n  \"commands\": []\n}\n", p.run("stuck -o json --workflow order --business-key c:1"))
	p.fails("stuck --business-key c:0", "--business-key needs --workflow")
	p.fails("stuck --instance c:0", "--instance is not a UUID")
	p.fails("stuck --workflow ordre", "workflow_not_found")
}
