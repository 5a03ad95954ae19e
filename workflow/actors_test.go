package workflow

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// rounds is a version of a workflow whose closing excludes actors of the current round.
func rounds(version int, since []string, plans ...Plan[claimV1]) *Definition[claimV1] {
	return Define("desk", version,
		Start("begin", "open", noAction[claimV1, None]),
		On("write", From("open"), Stay, noAction[claimV1, None]),
		On("reopen", From("open"), Stay, noAction[claimV1, None]),
		On("close", From("open"), "closed", noAction[claimV1, None]).NotBy("write").Since(since...)).Final("closed").Migrate(plans...)
}

func TestPlan_Rounds(t *testing.T) {
	t.Parallel()
	plan := func() *FromVersionPlan[claimV1, claimV1] { return FromVersion[claimV1, claimV1](1, nil) }
	reopen := []string{"reopen"}
	for name, test := range map[string]struct {
		from, to *Definition[claimV1]
		want     []string
	}{
		"same rounds": {rounds(1, reopen), rounds(2, reopen, plan()), nil},
		"new rounds":  {rounds(1, nil), rounds(2, reopen, plan()), []string{`leaves open who did "write" since reopen`}},
		"no rounds":   {rounds(1, reopen), rounds(2, nil, plan()), []string{`leaves open who did "write"`}},
		"forgotten":   {rounds(1, nil), rounds(2, reopen, plan().Forget("write")), nil},
	} {
		m, got := migrationOf(t, test.from, test.to)
		assert.Truef(t, slices.EqualFunc(got, test.want, strings.Contains), "%s: %q", name, got)
		if name == "same rounds" {
			actors := map[string][]string{"write.since.reopen": {"ann"}, "write.since.other": {"bob"}}
			assert.Equal(t, map[string][]string{"write.since.reopen": {"ann"}}, m.Actors(actors))
		}
	}
}

func TestSince_Mistakes(t *testing.T) {
	t.Parallel()
	_, err := Define("desk", 1,
		Start("begin", "open", noAction[claimV1, None]),
		On("close", From("open"), "closed", noAction[claimV1, None]).Since("reopen")).Final("closed").Build()
	assert.ErrorContains(t, err, `transition "close" has a Since without NotBy or NotByLast`)
	assert.ErrorContains(t, err, `transition "close" counts since "reopen", which does not exist`)
}
