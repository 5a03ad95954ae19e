package arch_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/docs"
)

const (
	root   = "../../.."
	module = "github.com/pawlhq/pawl"
)

func TestEveryImportIsInTheMatrix(t *testing.T) {
	violations, err := Check(os.DirFS(root), module, Matrix)
	require.NoError(t, err)
	for _, v := range violations {
		t.Error(v)
	}
}

func TestEveryEdgeOfTheMatrixIsUsed(t *testing.T) {
	edges, err := Unused(os.DirFS(root), module, Matrix)
	require.NoError(t, err)
	for _, edge := range edges {
		t.Error(edge)
	}
	rooms := []Room{{Path: "a"}, {Path: "b", Ours: []string{"a", "c/..."}}, {Path: "c/...", Ours: []string{"a", All}}}
	edges, err = Unused(fstest.MapFS{
		"b/b.go":      {Data: []byte("package b\nimport _ \"m.org/m/c/d\"\n")},
		"b/b_test.go": {Data: []byte("package b\nimport _ \"m.org/m/a\"\n")},
		"c/d/d.go":    {Data: []byte("package d\nimport _ \"m.org/m/a\"\n")},
	}, "m.org/m", rooms)
	want := []string{"room b does not import a"}
	assert.Truef(t, err == nil && slices.Equal(edges, want), "%q, %v", edges, err)
}

func TestEveryRoomOfTheMatrixExists(t *testing.T) {
	for _, r := range Matrix {
		folder := strings.TrimSuffix(r.Path, "/...")
		_, err := os.Stat(root + "/" + folder)
		assert.NoErrorf(t, err, "room %s", r.Path)
	}
}

// Nothing points back up: read from the first row to the last, the matrix needs no room that
// has not been read yet.
func TestRoomsImportOnlyRoomsOfEarlierRows(t *testing.T) {
	for _, edge := range upward(Matrix) {
		t.Error(edge)
	}
	rooms := []Room{
		{Path: "a/...", Ours: []string{"a/b", "c"}}, {Path: "c", Ours: []string{"a/x", "c", "d"}}, {Path: "d", Ours: []string{All}},
	}
	want := []string{"a/... may import c, of a later row", "c may import d, of a later row"}
	got := upward(rooms)
	assert.Truef(t, slices.Equal(got, want), "of rooms that point up %q are found, not %q", got, want)
}

// upward are the imports of rooms that no earlier row is about.
func upward(rooms []Room) (edges []string) {
	for i, r := range rooms {
		for _, imported := range r.Ours {
			if imported != All && roomOf(rooms[:i], imported) == nil && !covers(r.Path, imported) {
				edges = append(edges, r.Path+" may import "+imported+", of a later row")
			}
		}
	}
	return edges
}

// The record of what happened knows nothing of those who are told about it. (An event
// is read together with its audit row, so the outbox knows the audit.)
func TestTheAuditKnowsNothingOfTheOutbox(t *testing.T) {
	for _, r := range Matrix {
		later := func(p string) bool { return strings.Contains(p, "outbox") || p == "internal/kernel/store" }
		assert.Falsef(t, r.Path == "internal/kernel/audit" && slices.ContainsFunc(r.Ours, later),
			"room %s may import %v", r.Path, r.Ours)
	}
}

// Each service that the engine runs can be understood without the others.
func TestRoomsOfTheEngineNeverMeet(t *testing.T) {
	for _, r := range Matrix {
		for _, imported := range r.Ours {
			assert.Falsef(t, strings.HasPrefix(r.Path, "engine/") && strings.HasPrefix(imported, "engine"),
				"room %s may import %s", r.Path, imported)
		}
	}
}

// Only the root package imports the packages that compose the program.
func TestOnlyTheFrontDoorComposes(t *testing.T) {
	front := []string{".", "cmd/...", "app/cli"}
	for _, r := range Matrix {
		for _, imported := range r.Ours {
			assert.Falsef(t, (imported == "app/service" || strings.HasPrefix(imported, "app/cli")) &&
				!slices.Contains(front, r.Path) && !strings.HasPrefix(r.Path, "app/cli/"), "room %s may import %s", r.Path, imported)
		}
	}
}

// The check has to be able to fail.
func TestUnlistedImportsAreFound(t *testing.T) {
	rooms := []Room{
		{Path: ".", Ours: []string{All}},
		{Path: "cmd/...", Ours: []string{All}},
		{Path: "pure"},
		{Path: "store", Ours: []string{"pure"}, Modules: []string{"example.org/driver"}},
		{Path: "trees/...", Ours: []string{"trees/..."}},
	}
	tests := []struct {
		file, imports string
		want          string // of the violation, "" for none
	}{
		{"pure/a.go", "fmt", ""},
		{"pure/a.go", "m.org/m/store", "room pure may not import m.org/m/store"},
		{"pure/a.go", "example.org/driver", "room pure may not import example.org/driver"},
		{"pure/a_test.go", "m.org/m/store", ""},
		{"pure/a_test.go", "example.org/driver/sub", ""},
		{"pure/a_test.go", "example.org/other", "room pure may not import example.org/other"},
		{"pure/a_test.go", "m.org/m", "room pure may not import m.org/m"},
		{"pure/a_test.go", "m.org/m/cmd/x", "room pure may not import m.org/m/cmd/x"},
		{"store/a.go", "m.org/m/pure", ""},
		{"store/a.go", "m.org/m/pure/deep", "room store may not import m.org/m/pure/deep"},
		{"store/a.go", "example.org/driver/sub", ""},
		{"store/a.go", "example.org/driver2", "room store may not import example.org/driver2"},
		{"trees/oak/a.go", "m.org/m/trees/elm", ""},
		{"trees/oak/a.go", "m.org/m/store", "room trees/... may not import m.org/m/store"},
		{"a.go", "m.org/m/store", ""},
		{"cmd/x/a.go", "m.org/m", ""},
		{"cmd/x/a.go", "m.org/m/cmd/x/y", ""},
		{"nowhere/a.go", "fmt", "its package has no room in the matrix"},
		{"pure/testdata/a.go", "m.org/m/store", ""},
		{"_tmp/a.go", "m.org/m/store", ""},
	}
	for _, tt := range tests {
		source := fmt.Sprintf("package x\nimport _ %q\n", tt.imports)
		got, err := Check(fstest.MapFS{tt.file: {Data: []byte(source)}}, "m.org/m", rooms)
		require.NoError(t, err)
		var want []string
		if tt.want != "" {
			want = []string{tt.file + ": " + tt.want}
		}
		assert.Truef(t, slices.Equal(got, want), "%s imports %s:\n got %q\nwant %q", tt.file, tt.imports, got, want)
	}
}

func TestBrokenSourceIsAnError(t *testing.T) {
	_, err := Check(fstest.MapFS{"pure/a.go": {Data: []byte("package")}}, "m.org/m", []Room{{Path: "pure"}})
	assert.Error(t, err, "no error for a file that cannot be parsed")
}

// The document shows the matrix as it is.
func TestMatrix_Golden(t *testing.T) {
	docs.Part(t, root+"/docs/internals/imports.md", "matrix", table())
}

func table() string {
	var b strings.Builder
	b.WriteString("| package | imports of Pawl | other modules |\n|---|---|---|\n")
	for _, r := range Matrix {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", names([]string{r.Path}), names(r.Ours), names(r.Modules))
	}
	return b.String()
}

func names(paths []string) string {
	var out []string
	for _, p := range paths {
		switch p {
		case All:
			out = append(out, "everything")
		case ".":
			out = append(out, "the root, `pawl`")
		default:
			out = append(out, "`"+strings.TrimPrefix(p, "github.com/")+"`")
		}
	}
	if len(out) == 0 {
		return "–"
	}
	return strings.Join(out, ", ")
}
