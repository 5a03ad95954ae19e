package arch_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// MaxTestName is the longest name of a test, in bytes.
const MaxTestName = 60

// CheckTests parses the tests of a module and returns violations in the order of the files: names of tests and literal names of subtests
// that are longer than [MaxTestName]; calls of time.Sleep, because a sleep in place of a signal is too short on a busy machine and too long
// on every other (use package await); and functions that are not tests and ask whether the tests are short, because make test-long could
// not find their tests.
func CheckTests(fsys fs.FS) (violations []string, err error) {
	err = walk(fsys, func(name string) error {
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		source, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if what := testViolation(n); what != "" {
				violations = append(violations, fmt.Sprintf("%s: %s", files.Position(n.Pos()), what))
			}
			return true
		})
		return nil
	})
	return violations, err
}

func testViolation(n ast.Node) string {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Recv == nil && isTest(n.Name.Name) {
			return nameViolation(n.Name.Name)
		}
		if asksWhetherShort(n) {
			return "pgtest.Long or testing.Short outside of a test: make test-long leaves it out"
		}
	case *ast.CallExpr:
		called, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return ""
		}
		if nameOf(called) == "time.Sleep" {
			return "time.Sleep: use package await"
		}
		if called.Sel.Name != "Run" || len(n.Args) != 2 {
			return ""
		}
		if text, ok := n.Args[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
			if name, err := strconv.Unquote(text.Value); err == nil {
				return nameViolation(name)
			}
		}
	}
	return ""
}

func asksWhetherShort(f *ast.FuncDecl) (asks bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			asks = asks || nameOf(s) == "pgtest.Long" || nameOf(s) == "testing.Short"
		}
		return !asks
	})
	return asks
}

// nameOf returns a qualified name as it is written, or "" for another expression.
func nameOf(s *ast.SelectorExpr) string {
	if of, ok := s.X.(*ast.Ident); ok {
		return of.Name + "." + s.Sel.Name
	}
	return ""
}

func isTest(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Benchmark")
}

func nameViolation(name string) string {
	if len(name) <= MaxTestName {
		return ""
	}
	return fmt.Sprintf("the name %q has %d characters, more than %d", name, len(name), MaxTestName)
}

// walk visits the Go files of the main module and of the module bench, by their paths.
func walk(fsys fs.FS, visit func(name string) error) error {
	return fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (base == "testdata" || base[0] == '.' || base[0] == '_' || hasModule(fsys, name)):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		return visit(name)
	})
}

// hasModule reports whether a folder is another module, except bench, which follows the same rules.
func hasModule(fsys fs.FS, folder string) bool {
	_, err := fs.Stat(fsys, path.Join(folder, "go.mod"))
	return err == nil && folder != "bench"
}
