package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rawSQL is a statement with the default schema's name in it instead of {pawl}.
var rawSQL = regexp.MustCompile(`\b(FROM|INTO|UPDATE|JOIN|TABLE|FUNCTION|SELECT|LOCK|ONLY)[\s(]+pawl\.[a-z_]+`)

// A statement that names the schema itself would work in the schema of that name alone. Those of internal/testkit/tables are for tests, which look
// at the default schema.
func TestSchemaNameIsOpen(t *testing.T) {
	err := walk(os.DirFS(root), func(name string) error {
		if strings.HasSuffix(name, "_test.go") || path.Dir(name) == "internal/testkit/tables" {
			return nil
		}
		text, err := fs.ReadFile(os.DirFS(root), name)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				assert.Equalf(t, "", rawSQL.FindString(l.Value),
					"%s: write {pawl}. instead of pawl., and pass the statement to schema.In", files.Position(l.Pos()))
			}
			return true
		})
		return nil
	})
	require.NoError(t, err)
}
