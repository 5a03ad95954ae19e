package arch_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// declared are the names of a module, each with the files that declare it: a package's as
// package.Name, a type's methods and fields as Type.Member, types and tests by their names too.
type declared map[string][]string

func (d declared) add(file string, names ...string) {
	for _, name := range names {
		d[name] = append(d[name], file)
	}
}

// declarations parses a module, its tests too.
func declarations(fsys fs.FS) (declared, error) {
	names := declared{}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (base == "testdata" || base[0] == '.'):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		source, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			names.declare(name, file.Name.Name, d)
		}
		return nil
	})
	return names, err
}

func (d declared) declare(file, pkg string, decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv != nil {
			d.add(file, receiver(decl.Recv.List[0].Type)+"."+decl.Name.Name)
			return
		}
		d.add(file, pkg+"."+decl.Name.Name, decl.Name.Name)
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				d.add(file, pkg+"."+spec.Name.Name, spec.Name.Name)
				d.add(file, members(spec)...)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					d.add(file, pkg+"."+name.Name)
				}
			}
		}
	}
}

func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}

// members are the fields of a struct, or the methods of an interface.
func members(of *ast.TypeSpec) (names []string) {
	var list *ast.FieldList
	switch t := of.Type.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return nil
	}
	for _, field := range list.List {
		for _, name := range field.Names {
			names = append(names, of.Name.Name+"."+name.Name)
		}
	}
	return names
}

var (
	fence     = regexp.MustCompile("(?ms)^```.*?^```$")
	quoted    = regexp.MustCompile("`([^`\n]+)`")
	inFile    = regexp.MustCompile("`([^`\n]+\\.go)`:\\s+`([^`\n]+)`")
	aPath     = regexp.MustCompile(`^(?:[\w.-]+/)[\w./-]*$|^[\w-]+\.(?:go|mod|md)$`)
	aName     = regexp.MustCompile(`^[A-Za-z]\w*\.[A-Za-z]\w*$`)
	aTest     = regexp.MustCompile(`^(?:Test|Fuzz)[A-Z]\w*$`)
	linkTo    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	titles    = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	noAnchor  = regexp.MustCompile(`[^\w\- ]+`)
	sqlObject = regexp.MustCompile(`\bpawl\.\w+`)
)

// strangers are what a page names and what is not there. Of a page these are files, names as
// package.Name and Type.Member, tests, and links. A name that follows a file ("`file.go`: `Type.Method`")
// must be that file's.
func strangers(fsys fs.FS, page string, names declared) (list []string, err error) {
	source, err := fs.ReadFile(fsys, page)
	if err != nil {
		return nil, err
	}
	text := fence.ReplaceAllString(string(source), "")
	for _, q := range quoted.FindAllStringSubmatch(text, -1) {
		switch s := q[1]; {
		case aPath.MatchString(s):
			if _, err := fs.Stat(fsys, path.Clean(s)); err != nil {
				list = append(list, fmt.Sprintf("%s: there is no file %s", page, s))
			}
		case aName.MatchString(s), aTest.MatchString(s):
			if len(names[s]) == 0 {
				list = append(list, fmt.Sprintf("%s: nothing is called %s", page, s))
			}
		}
	}
	for _, q := range inFile.FindAllStringSubmatch(text, -1) {
		if found := names[q[2]]; len(found) > 0 && !slices.Contains(found, q[1]) {
			list = append(list, fmt.Sprintf("%s: %s is not in %s, but in %v", page, q[2], q[1], found))
		}
	}
	for _, l := range linkTo.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(l[1], "://") && !leads(fsys, page, l[1]) {
			list = append(list, fmt.Sprintf("%s: the link %s leads nowhere", page, l[1]))
		}
	}
	return list, nil
}

// leads reports whether a relative link leads to a file, and to a title in it where it names one.
func leads(fsys fs.FS, page, link string) bool {
	file, anchor, _ := strings.Cut(link, "#")
	if file = path.Join(path.Dir(page), file); strings.HasPrefix(link, "#") {
		file = page
	}
	text, err := fs.ReadFile(fsys, file)
	if err != nil {
		_, err = fs.Stat(fsys, file) // a folder
		return err == nil && anchor == ""
	}
	return anchor == "" || slices.ContainsFunc(titles.FindAllStringSubmatch(string(text), -1), func(title []string) bool {
		return strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(title[1]), ""), " ", "-") == anchor
	})
}

// New contributors read these pages first, so the names on them must exist.
func TestPagesForContributorsNameWhatIsThere(t *testing.T) {
	fsys := os.DirFS(root)
	names, err := declarations(fsys)
	require.NoError(t, err)
	migrations, err := fs.Glob(fsys, "schema/migrations/*.sql")
	require.NoError(t, err)
	for _, name := range migrations { // tables and functions of the database, by the schema's name
		text, err := fs.ReadFile(fsys, name)
		require.NoError(t, err)
		names.add(name, append(sqlObject.FindAllString(string(text), -1), "pawl.name")...)
	}
	pages, err := fs.Glob(fsys, "docs/contributing/*.md")
	require.Truef(t, err == nil && len(pages) != 0, "%v %v", pages, err)
	front, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	for _, page := range append(pages, "docs/glossary.md", "CONTRIBUTING.md") {
		missing, err := strangers(fsys, page, names)
		require.NoError(t, err)
		for _, m := range missing {
			t.Error(m)
		}
		assert.Falsef(t, page != "CONTRIBUTING.md" && !strings.Contains(string(front), "("+page+")"),
			"CONTRIBUTING.md does not link %s", page)
	}
}

func TestNamesThatAreNotThereAreFound(t *testing.T) {
	fsys := fstest.MapFS{
		"a/a.go": {Data: []byte("package a\n\ntype List[T any] struct{ Len int }\n\nfunc (l *List[T]) Add(v T) {}\n\nfunc plan() {}\n")},
		"a/b.go": {Data: []byte("package a\n\nvar Limit = 1\n")},
		"doc.md": {Data: []byte("# The way in\n`a/a.go`: `List.Add`, `List.Len`, `a.plan`, `a.Limit` [up](#the-way-in) [a](a)\n" +
			"```\n`a.Gone`\n```\n" +
			"`a/c.go` `List.Gone` `a.Gone` `TestGone` `a/b.go`: `a.plan` [x](#gone) [y](gone.md) `no.name at all`\n")},
	}
	names, err := declarations(fsys)
	require.NoError(t, err)
	got, err := strangers(fsys, "doc.md", names)
	want := []string{"doc.md: there is no file a/c.go", "doc.md: nothing is called List.Gone", "doc.md: nothing is called a.Gone",
		"doc.md: nothing is called TestGone", "doc.md: a.plan is not in a/b.go, but in [a/a.go]",
		"doc.md: the link #gone leads nowhere", "doc.md: the link gone.md leads nowhere"}
	assert.Truef(t, err == nil && slices.Equal(got, want), "found %q, %v", got, err)
}

// A page that says that tests run what it states names them, for each of its sections.
func TestThePageOfChangesNamesItsTests(t *testing.T) {
	const page, last = "docs/changing-a-workflow.md", "The tests that run it"
	fsys := os.DirFS(root)
	names, err := declarations(fsys)
	require.NoError(t, err)
	text, err := fs.ReadFile(fsys, page)
	require.NoError(t, err)
	sections, table, found := strings.Cut(string(text), "\n## "+last+"\n")
	require.Truef(t, found, "%s has no section %q", page, last)
	for _, title := range titles.FindAllStringSubmatch(sections, -1)[1:] {
		assert.Containsf(t, table, "\n| "+title[1]+" | ", "no test runs %q", title[1])
	}
	for _, name := range quoted.FindAllStringSubmatch(table, -1) {
		assert.Truef(t, aTest.MatchString(name[1]) && len(names[name[1]]) != 0, "there is no test %s", name[1])
	}
}
