package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// created finds the tables that a migration makes, and named those that a text of SQL
// names; the SQL of this module has every one of them qualified, see package schema.
var (
	created = regexp.MustCompile(`(?m)^CREATE TABLE pawl\.(\w+)`)
	named   = regexp.MustCompile(`\{pawl\}\.(\w+)`)
)

// Tables lists the tables that the migrations in a folder make.
func Tables(fsys fs.FS, folder string) (tables []string, err error) {
	files, err := fs.Glob(fsys, folder+"/*.sql")
	for _, name := range files {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		for _, m := range created.FindAllStringSubmatch(string(text), -1) {
			tables = append(tables, m[1])
		}
	}
	return tables, err
}

// Owners tells which packages name each of the tables in a string of their code, tests
// left out.
func Owners(fsys fs.FS, tables []string) (map[string][]string, error) {
	owners := map[string]map[string]bool{}
	for _, t := range tables {
		owners[t] = map[string]bool{}
	}
	err := walk(fsys, func(name string) error {
		if strings.HasSuffix(name, "_test.go") {
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
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, _ := strconv.Unquote(lit.Value)
			for _, m := range named.FindAllStringSubmatch(text, -1) {
				if owners[m[1]] != nil && m[0] != text { // a name alone may be anything's
					owners[m[1]][path.Dir(name)] = true
				}
			}
			return true
		})
		return nil
	})
	list := map[string][]string{}
	for t, packages := range owners {
		list[t] = slices.Sorted(maps.Keys(packages))
	}
	return list, err
}
