package workflow

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type (
	withoutPriority struct {
		Text string `json:"text"`
	}
	withPriority struct {
		Text     string `json:"text"`
		Priority int    `json:"priority,omitzero"`
	}
)

func letters[D any](version int, plans ...Plan[D]) *Definition[D] {
	return Define("letter", version, Start("begin", "open", noAction[D, None]), On("end", From("open"), "closed", noAction[D, None])).
		Final("closed").Migrate(plans...)
}

// Members that the old version declares as dropped are dropped, with a function and without one; members that another build has added are
// neither lost nor made unreadable.
func TestMigration_UnknownMembers(t *testing.T) {
	t.Parallel()
	same := func(old withoutPriority) (withoutPriority, error) { return old, nil }
	keeps := Plan[withoutPriority](FromVersion[withoutPriority, withoutPriority](1, nil))
	reads := Plan[withPriority](FromVersion[withoutPriority, withPriority](1, nil))
	makes := Plan[withoutPriority](FromVersion(1, same))
	const high = `{"text":"a","priority":"high"}`
	from, dropping := letters[withoutPriority](1), letters[withoutPriority](1).DataChanged("/priority")
	for name, test := range map[string]struct {
		from, to Source
		data     string
		want     string // of the data, or of the refusal
	}{
		"unchanged, kept":                {from, letters(2, keeps), high, high},
		"unchanged, meant to go":         {dropping, letters(2, keeps), high, `{"text":"a"}`},
		"unchanged, and another type":    {from, letters(2, reads), high, `another type, "/priority"`},
		"by a function, meant to go":     {dropping, letters(2, makes), high, `{"text":"a"}`},
		"by a function, that loses some": {from, letters(2, makes), high, `does not know in the old version, "/priority"`},
		"by a function, one of two":      {dropping, letters(2, makes), `{"text":"a","priority":1,"x":1}`, `"/x"`},
	} {
		m, mistakes := migrationOf(t, test.from, test.to)
		require.Emptyf(t, mistakes, "%s: %q", name, mistakes)
		data, err := m.Data([]byte(test.data))
		got := string(data)
		if err != nil {
			got = AsError(err).Message
			assert.Truef(t, AsError(err).Code == MigrationRefused && !strings.Contains(got, "workflow."), "%s: %v", name, err)
		}
		assert.Truef(t, (err != nil || got == test.want) && strings.Contains(got, test.want), "%s: %s", name, got)
	}
}

// Attributes are computed again, so an attribute that the new version does not declare is not lost data.
func TestPlan_DroppedMembers(t *testing.T) {
	t.Parallel()
	from := letters[withPriority](1).Attr("text", func(d withPriority) string { return d.Text })
	to := letters(2, Plan[withoutPriority](FromVersion[withPriority, withoutPriority](1, nil))).DataChanged("/priority")
	if _, mistakes := migrationOf(t, from, to); len(mistakes) > 0 {
		t.Errorf("%q", mistakes)
	}
	to = letters(2, Plan[withoutPriority](FromVersion[withPriority, withoutPriority](1, nil)))
	_, mistakes := migrationOf(t, from, to)
	assert.Truef(t, len(mistakes) == 1 && strings.Contains(mistakes[0], `"/priority" (int64) has no place in it`), "%q", mistakes)
}

// A member has one path wherever a type is within itself, and is dropped everywhere.
func TestMigration_DropsRecursiveMembers(t *testing.T) {
	t.Parallel()
	type chain struct {
		V    int    `json:"v"`
		Next *chain `json:"next,omitzero"`
	}
	type longChain struct {
		V    int        `json:"v"`
		X    int        `json:"x"`
		Next *longChain `json:"next,omitzero"`
	}
	same := func(old chain) (chain, error) { return old, nil }
	m, mistakes := migrationOf(t, letters[chain](1).DataChanged("/x"), letters(2, Plan[chain](FromVersion(1, same))))
	require.Empty(t, mistakes)
	data, err := m.Data([]byte(`{"v":1,"x":1,"next":{"v":2,"x":2}}`))
	assert.Truef(t, err == nil && string(data) == `{"v":1,"next":{"v":2}}`, "%s, %v", data, err)
	lacking, _ := membersOf[chain](t, "/x").Unlike(membersOf[longChain](t).Members())
	assert.Empty(t, lacking)
}
