package ops_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/engine"
)

func TestOpsBegin_SetsDefaultVersion(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.more = sacks()
	p.serve(func(e *engine.Engine) {
		_, err := e.Submit(t.Context(), place(1))
		assert.NoError(t, err)
	})
	assert.Equal(t, "order: new instances begin with version 1\n", p.run("begin order 1 --by ann"))
	var list api.VersionList
	err := json.Unmarshal([]byte(p.run("versions -o json")), &list)
	require.Truef(t, err == nil && len(list.Versions) != 0, "%+v, %v", list, err)
	for _, v := range list.Versions {
		assert.Falsef(t, v.Workflow == "order" && (!v.Begins || v.Open != 1 || len(v.States) != 1 || len(v.Nodes) != 0), "%+v", v)
	}
	got := p.run("versions")
	assert.True(t, strings.Contains(got, "nodes without it") && strings.Contains(got, "new ones, as said"), got)
	got = p.run("begin order newest -o json")
	assert.True(t, strings.Contains(got, `"version": 0`) && strings.Contains(got, `"begins": 1`), got)
	assert.Equal(t, "sack: new instances begin with the newest version that a node knows, now 2\n", p.run("begin sack newest"))
	got = p.run("versions")
	assert.True(t, !strings.Contains(got, "as said") && strings.Contains(got, "new ones"), got)
}
