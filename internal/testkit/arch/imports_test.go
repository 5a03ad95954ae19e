package arch_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Check parses the imports of every Go file of a module, whatever its build constraints, and returns the imports that the matrix forbids,
// in the order of the files. Code imports only what its entry lists. A test may import every package of the module, testify, kin-openapi,
// and every module that some entry lists. Only the module's root and packages below cmd import these two, because they compose the others.
// Every package has an entry.
func Check(fsys fs.FS, module string, rooms []Room) ([]string, error) {
	var violations []string
	err := walk(fsys, func(name string) error {
		found, err := checkFile(fsys, name, module, rooms)
		violations = append(violations, found...)
		return err
	})
	return violations, err
}

func checkFile(fsys fs.FS, name, module string, rooms []Room) ([]string, error) {
	all, err := imports(fsys, name)
	if err != nil {
		return nil, err
	}
	room := roomOf(rooms, path.Dir(name))
	if room == nil {
		return []string{name + ": its package has no room in the matrix"}, nil
	}
	var violations []string
	for _, imported := range all {
		if !room.allows(imported, module, strings.HasSuffix(name, "_test.go"), rooms) {
			violations = append(violations, fmt.Sprintf("%s: room %s may not import %s", name, room.Path, imported))
		}
	}
	return violations, nil
}

// imports are the packages that a file imports.
func imports(fsys fs.FS, name string) (all []string, err error) {
	source, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		all = append(all, imported)
	}
	return all, nil
}

// Unused returns what the rooms may import of the module and do not, tests left out.
func Unused(fsys fs.FS, module string, rooms []Room) (edges []string, err error) {
	used := map[[2]string]bool{}
	err = walk(fsys, func(name string) error {
		room := roomOf(rooms, path.Dir(name))
		if room == nil || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		all, err := imports(fsys, name)
		for _, imported := range all {
			for _, pattern := range room.Ours {
				if covers(pattern, strings.TrimPrefix(imported, module+"/")) {
					used[[2]string{room.Path, pattern}] = true
				}
			}
		}
		return err
	})
	for _, r := range rooms {
		for _, pattern := range r.Ours {
			if pattern != All && !used[[2]string{r.Path, pattern}] {
				edges = append(edges, fmt.Sprintf("room %s does not import %s", r.Path, pattern))
			}
		}
	}
	return edges, err
}

// roomOf is the room of a package: the one with the longest path.
func roomOf(rooms []Room, pkg string) *Room {
	var found *Room
	for i := range rooms {
		if covers(rooms[i].Path, pkg) && (found == nil || len(rooms[i].Path) > len(found.Path)) {
			found = &rooms[i]
		}
	}
	return found
}

// covers reports whether a path, which may end in "/...", stands for a package.
func covers(pattern, pkg string) bool {
	tree, is := strings.CutSuffix(pattern, "/...")
	if !is {
		return pattern == pkg || pattern == All
	}
	return pkg == tree || strings.HasPrefix(pkg, tree+"/")
}

func (r *Room) allows(imported, module string, test bool, rooms []Room) bool {
	pkg, own := ".", imported == module
	if below, is := strings.CutPrefix(imported, module+"/"); is {
		pkg, own = below, true
	}
	switch {
	case own && (pkg == "." || covers("cmd/...", pkg)):
		return r.Path == "." || covers("cmd/...", strings.TrimSuffix(r.Path, "/..."))
	case own:
		return test || slices.ContainsFunc(r.Ours, func(pattern string) bool { return covers(pattern, pkg) })
	case standard(imported):
		return true
	case test:
		return covers("github.com/stretchr/testify/...", imported) || covers(kinOpenAPI+"/...", imported) ||
			slices.ContainsFunc(rooms, func(other Room) bool { return other.stands(imported) })
	default:
		return r.stands(imported)
	}
}

// stands reports whether the room may stand on the module of a package.
func (r *Room) stands(imported string) bool {
	return slices.ContainsFunc(r.Modules, func(module string) bool { return covers(module+"/...", imported) })
}

// standard reports whether a package is of the standard library: those have no
// dot in the first part of their path.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}
