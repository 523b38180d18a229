package lint

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// source is one Go file of this module.
type source struct {
	path      string // from the module's root
	pkg       string // directory from the module's root
	test      bool
	generated bool
	lines     int
	set       *token.FileSet
	tree      *ast.File
}

func (s source) imports() []string {
	var paths []string
	for _, spec := range s.tree.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		paths = append(paths, path)
	}
	return paths
}

func (s source) line(pos token.Pos) int { return s.set.Position(pos).Line }

var parsed = sync.OnceValues(parseModule)

func sources(t *testing.T) []source {
	t.Helper()
	files, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("only %d files found: the lint looks in the wrong place", len(files))
	}
	return files
}

const root = "../../../.."

func parseModule() ([]source, error) {
	var files []source
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || nested(path)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parse(path)
		files = append(files, file)
		return err
	})
	return files, err
}

// nested tells a module inside this one, which has its own rules.
func nested(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil && dir != root
}

func parse(path string) (source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return source{}, err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, path, text, parser.ParseComments)
	if err != nil {
		return source{}, err
	}
	relative, err := filepath.Rel(root, path)
	return source{
		path: relative, pkg: filepath.ToSlash(filepath.Dir(relative)), test: strings.HasSuffix(path, "_test.go"),
		generated: ast.IsGenerated(tree), lines: bytes.Count(text, []byte("\n")), set: set, tree: tree,
	}, err
}
