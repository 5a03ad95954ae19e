package workflow

import (
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type storedLine struct {
	Article string `json:"article"`
	Count   int32  `json:"count"`
}

type storedTree struct {
	Name     string       `json:"name"`
	Children []storedTree `json:"children"`
}

// membersOf is a workflow whose data is a D.
func membersOf[D any](t *testing.T, gone ...string) *Workflow {
	t.Helper()
	w, err := Define("w", 1, Start("begin", "done", func(*Call, *D, None) error { return nil })).Final("done").DataChanged(gone...).Build()
	require.NoError(t, err)
	return w
}

func TestRecorded_Unreadable(t *testing.T) {
	t.Parallel()
	type recorded struct {
		Name  string                 `json:"name"`
		Lines []storedLine           `json:"lines"`
		By    map[string]storedLine  `json:"by"`
		At    time.Time              `json:"at"`
		Tree  storedTree             `json:"tree"`
		Any   any                    `json:"any"`
		Some  map[string]storedLine  `json:"some"`
		Flag  []bool                 `json:"flag"`
		Many  [3]int                 `json:"many"`
		ByDay map[int64]*storedLine  `json:"by_day"`
		Rest  map[string]interface{} `json:"rest"`
		Own   storedLine             `json:"own"`
	}
	type able struct { // wider, and in another order
		Rest  any                   `json:"rest"`
		ByDay map[int64]storedLine  `json:"by_day"`
		Many  []int                 `json:"many"`
		Any   any                   `json:"any"`
		Some  any                   `json:"some"`
		Flag  []any                 `json:"flag"`
		Tree  *storedTree           `json:"tree"`
		At    string                `json:"at"`
		By    map[string]storedLine `json:"by"`
		Lines []struct {
			Article string  `json:"article"`
			Count   float64 `json:"count"`
			More    bool    `json:"more"`
		} `json:"lines"`
		Name string         `json:"name"`
		Own  jsontext.Value `json:"own"` // decodes itself
	}
	type unable struct {
		Title string `json:"title"`
		Lines []struct {
			Article int   `json:"article"`
			Count   int16 `json:"count"`
		} `json:"lines"`
		By    map[string]string     `json:"by"`
		At    int64                 `json:"at"`
		Tree  struct{}              `json:"tree"`
		Any   string                `json:"any"`
		Some  map[string]storedLine `json:"some"`
		Flag  []bool                `json:"flag"`
		Many  [2]int                `json:"many"`
		ByDay []storedLine          `json:"by_day"`
		Rest  map[string]storedTree `json:"rest"`
		Own   storedLine            `json:"own"`
	}
	before := membersOf[recorded](t).Members()
	if lacking, unreadable := membersOf[able](t).Unlike(before); len(lacking)+len(unreadable) > 0 {
		t.Errorf("it can read all: %q, %q", lacking, unreadable)
	}
	lacking, unreadable := membersOf[unable](t).Unlike(before)
	if want := []string{`"/name" (string)`, `"/tree/children" (array)`, `"/tree/name" (string)`}; !slices.Equal(lacking, want) {
		t.Errorf("it lacks %q, want %q", lacking, want)
	}
	want := []string{`"/any" (any, now string)`, `"/at" (time, now int64)`, `"/by/*" (object, now string)`,
		`"/by_day" (object by int64, now array)`,
		`"/lines/*/article" (string, now int64)`, `"/lines/*/count" (int32, now int16)`, `"/many" (array of 3, now array of 2)`,
		`"/rest/*" (any, now object)`}
	assert.Truef(t, slices.Equal(unreadable, want), "it cannot read %q\nwant %q", unreadable, want)
	meant := membersOf[unable](t, "/name", "/tree", "/any", "/at", "/by", "/by_day", "/lines/*/article", "/lines/*/count", "/many", "/rest")
	if lacking, unreadable := meant.Unlike(before); len(lacking)+len(unreadable) > 0 {
		t.Errorf("all of it is meant: %q, %q", lacking, unreadable)
	}
	_, own := meant.Recorded(before)["/name"]
	assert.False(t, own, "what is meant to go is recorded on")
	assert.NotEqual(t, membersOf[able](t).MembersHash(), membersOf[recorded](t).MembersHash(), "other members have the same hash")
}

func TestDataChangedNamesMembers(t *testing.T) {
	t.Parallel()
	_, err := Define("w", 1, Start("begin", "done", func(*Call, *struct{},
		None) error {
		return nil
	})).Final("done").DataChanged("name").Build()
	assert.Error(t, err, "what is no path was taken")
}

// The numbers of an any are float64, which does not hold every int64; and what a float32 of an older build reads it rounds.
func TestNoNumberIsRoundedByAnotherType(t *testing.T) {
	t.Parallel()
	type part struct {
		N int64 `json:"n"`
	}
	type recorded struct {
		Wide  int64   `json:"wide"`
		Parts []part  `json:"parts"`
		Part  part    `json:"part"`
		Ratio float32 `json:"ratio"`
		Share float32 `json:"share"`
		Same  any     `json:"itself"`
	}
	type other struct {
		Wide  any              `json:"wide"`
		Parts []map[string]any `json:"parts"`
		Part  any              `json:"part"`
		Ratio float64          `json:"ratio"`
		Share any              `json:"share"`
		Same  any              `json:"itself"`
	}
	lacking, unreadable := membersOf[other](t).Unlike(membersOf[recorded](t).Members())
	want := []string{`"/part/n" (int64, now any)`, `"/parts/*/n" (int64, now any)`, `"/ratio" (float32, now float64)`,
		`"/share" (float32, now any)`, `"/wide" (int64, now any)`}
	assert.Truef(t, len(lacking) == 0 && slices.Equal(unreadable, want),
		"lacking %q, unreadable %q\nwant %q", lacking, unreadable, want)
}

// A newer build may read as a named member what a map has stored under that key.
func TestRecorded_MapMember(t *testing.T) {
	t.Parallel()
	type line struct {
		N int `json:"n"`
	}
	type recorded struct {
		Count int             `json:"count"`
		Rest  map[string]int  `json:",embed"`
		Lines map[string]line `json:"lines"`
	}
	type able struct {
		Count int            `json:"count"`
		More  int64          `json:"more"`
		Rest  map[string]int `json:",embed"`
		Lines struct {
			First line            `json:"first"`
			Rest  map[string]line `json:",embed"`
		} `json:"lines"`
	}
	type unable struct {
		Count int            `json:"count"`
		Name  string         `json:"name"`
		Rest  map[string]int `json:",embed"`
		Lines struct {
			First struct {
				N string `json:"n"`
				M string `json:"m"`
			} `json:"first"`
			Rest map[string]line `json:",embed"`
		} `json:"lines"`
	}
	before := membersOf[recorded](t).Members()
	if lacking, unreadable := membersOf[able](t).Unlike(before); len(lacking)+len(unreadable) > 0 {
		t.Errorf("it can read all: %q, %q", lacking, unreadable)
	}
	lacking, unreadable := membersOf[unable](t).Unlike(before)
	want := []string{`"/lines/first/n" (int64, now string)`, `"/name" (int64, now string)`}
	assert.Truef(t, len(lacking) == 0 && slices.Equal(unreadable, want),
		"lacking %q, unreadable %q, want %q", lacking, unreadable, want)
	if _, unreadable := membersOf[unable](t, "/name", "/lines/first/n").Unlike(before); len(unreadable) > 0 {
		t.Errorf("it is meant: %q", unreadable)
	}
}

func TestAResultThatIsRecordedAndIsNoMoreIsLacking(t *testing.T) {
	w := fullWorkflow(t)
	recorded := w.Members()
	recorded["result gone"], recorded["result gone/number"] = "object", "string"
	if lacking, unreadable := w.Unlike(recorded); !slices.Equal(lacking, []string{`"result gone" (object)`}) || unreadable != nil {
		t.Errorf("lacking %q, unreadable %q", lacking, unreadable)
	}
}
