package lint

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

const (
	maxFunctionLines = 80
	maxFileLines     = 800
	maxPackageLines  = 3000
)

// tables are packages or files that list rather than compute; they may be long.
var tables = map[string]string{
	"controller/config":      "one row a property",
	"protocol/schema":        "generated codecs",
	"cmd/ottla/internal/api": "one file an API",
	"compat/diff":            "lists of requests, for a test",
	"cmd/ottla/internal/sim": "a test program: models, clients, faults; nothing of the product",
}

func TestSizes(t *testing.T) {
	packages := map[string]int{}
	for _, file := range sources(t) {
		if file.generated || file.test {
			continue
		}
		packages[file.pkg] += file.lines
		if _, table := tables[file.pkg]; !table && file.lines > maxFileLines {
			t.Errorf("%s has %d lines; %d is the limit", file.path, file.lines, maxFileLines)
		}
		for _, declaration := range file.tree.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || function.Body == nil || flatSwitch(function.Body) {
				continue
			}
			if lines := file.line(function.End()) - file.line(function.Pos()) + 1; lines > maxFunctionLines {
				t.Errorf("%s:%d: %s runs %d lines; %d is the limit", file.path, file.line(function.Pos()), function.Name.Name, lines, maxFunctionLines)
			}
		}
	}
	for pkg, lines := range packages {
		if _, table := tables[pkg]; !table && lines > maxPackageLines {
			t.Errorf("package %s has %d lines; %d is the limit", pkg, lines, maxPackageLines)
		}
	}
}

// flatSwitch tells a function that is one switch of short cases, which reads as
// a table.
func flatSwitch(body *ast.BlockStmt) bool {
	for _, statement := range body.List {
		switch statement := statement.(type) {
		case *ast.SwitchStmt:
			return shortCases(statement.Body)
		case *ast.TypeSwitchStmt:
			return shortCases(statement.Body)
		}
	}
	return false
}

func shortCases(body *ast.BlockStmt) bool {
	for _, clause := range body.List {
		if clause, ok := clause.(*ast.CaseClause); ok && len(clause.Body) > 3 {
			return false
		}
	}
	return true
}

// vague are package names that say nothing of what is inside.
var vague = []string{"util", "utils", "common", "types", "helpers", "misc", "base", "shared"}

func TestNames(t *testing.T) {
	documented := map[string]bool{}
	for _, file := range sources(t) {
		for _, name := range vague {
			if path.Base(file.pkg) == name {
				t.Errorf("%s: a package called %s says nothing", file.path, name)
			}
		}
		if file.tree.Doc != nil {
			documented[file.pkg] = true
		}
		for _, declaration := range file.tree.Decls {
			generic, ok := declaration.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range generic.Specs {
				if named, ok := spec.(*ast.TypeSpec); ok && (strings.HasSuffix(named.Name.Name, "Impl") || strings.HasPrefix(named.Name.Name, "Mock")) {
					t.Errorf("%s: type %s", file.path, named.Name.Name)
				}
			}
		}
	}
	for _, file := range sources(t) {
		if !file.test && !documented[file.pkg] {
			t.Errorf("package %s has no package comment", file.pkg)
			documented[file.pkg] = true
		}
	}
}
