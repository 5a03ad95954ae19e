package workflow

import (
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
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
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWhatABuildCannotReadOfWhatIsRecordedIsNamed(t *testing.T) {
	t.Parallel()
	type recorded struct {
		Name  string                 `json:"name"`
		Lines []storedLine           `json:"lines"`
		By    map[string]storedLine  `json:"by"`
		At    time.Time              `json:"at"`
		Tree  storedTree             `json:"tree"`
		Any   any                    `json:"any"`
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
	if !slices.Equal(unreadable, want) {
		t.Errorf("it cannot read %q\nwant %q", unreadable, want)
	}
	meant := membersOf[unable](t, "/name", "/tree", "/any", "/at", "/by", "/by_day", "/lines/*/article", "/lines/*/count", "/many", "/rest")
	if lacking, unreadable := meant.Unlike(before); len(lacking)+len(unreadable) > 0 {
		t.Errorf("all of it is meant: %q, %q", lacking, unreadable)
	}
	if _, own := meant.Recorded(before)["/name"]; own {
		t.Error("what is meant to go is recorded on")
	}
	if membersOf[recorded](t).MembersHash() == membersOf[able](t).MembersHash() {
		t.Error("other members have the same hash")
	}
}

func TestDataChangedNamesMembers(t *testing.T) {
	t.Parallel()
	_, err := Define("w", 1, Start("begin", "done", func(*Call, *struct{},
		None) error {
		return nil
	})).Final("done").DataChanged("name").Build()
	if err == nil {
		t.Error("what is no path was taken")
	}
}
