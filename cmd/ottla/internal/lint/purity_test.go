package lint

import (
	"go/ast"
	"strings"
	"testing"
)

// ticking lists the packages of storage/, controller/ and cmd/ that may read a
// clock or start a goroutine. protocol/server and protocol/client are the
// edge: they own sockets.
var ticking = map[string]string{
	"cmd/ottla/internal/node":    "pumps the shells",
	"cmd/ottla":                  "the process",
	"cmd/ottla/internal/metrics": "serves HTTP",
	"cmd/ottla/internal/lint":    "no code",
}

// cores are plain structs: besides clocks and goroutines they have no lock, no
// channel, no I/O and no logger.
var cores = []string{
	"storage/producer", "storage/partition", "controller/raft", "controller/machine", "controller/cluster", "controller/acl",
	"controller/group", "controller/offsets", "controller/consumer", "controller/assign", "controller/txn", "cmd/ottla/internal/session", "cmd/ottla/internal/quota", "protocol/sasl",
}

var bannedInCores = []string{"sync", "sync/atomic", "os", "io", "io/fs", "net", "log", "log/slog", "context"}

// clocks are the selectors that read the time or make a timer.
var clocks = map[string]bool{
	"time.Now": true, "time.Since": true, "time.Until": true, "time.Sleep": true, "time.After": true, "time.AfterFunc": true,
	"time.Tick": true, "time.NewTimer": true, "time.NewTicker": true,
}

var randomness = []string{"math/rand", "math/rand/v2", "crypto/rand", "hash/maphash"}

func stepDriven(pkg string) bool {
	if _, free := ticking[pkg]; free {
		return false
	}
	return strings.HasPrefix(pkg, "storage/") || strings.HasPrefix(pkg, "controller/") || strings.HasPrefix(pkg, "cmd/ottla/internal/")
}

func TestNoGoroutineClockOrRandomness(t *testing.T) {
	for _, file := range sources(t) {
		if file.test || !stepDriven(file.pkg) {
			continue
		}
		for _, imported := range file.imports() {
			for _, banned := range randomness {
				if imported == banned {
					t.Errorf("%s: imports %s; randomness comes in as random func() uint64", file.path, imported)
				}
			}
		}
		ast.Inspect(file.tree, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.GoStmt:
				t.Errorf("%s:%d: starts a goroutine; node pumps this package", file.path, file.line(node.Pos()))
			case *ast.SelectorExpr:
				if base, ok := node.X.(*ast.Ident); ok && clocks[base.Name+"."+node.Sel.Name] {
					t.Errorf("%s:%d: uses %s.%s; the time comes in as an argument", file.path, file.line(node.Pos()), base.Name, node.Sel.Name)
				}
			}
			return true
		})
	}
}

func TestCoresAreCores(t *testing.T) {
	core := map[string]bool{}
	for _, pkg := range cores {
		core[pkg] = true
	}
	for _, file := range sources(t) {
		if file.test || !core[file.pkg] {
			continue
		}
		for _, imported := range file.imports() {
			for _, banned := range bannedInCores {
				if imported == banned {
					t.Errorf("%s: a core imports %s", file.path, imported)
				}
			}
		}
		ast.Inspect(file.tree, func(node ast.Node) bool {
			switch node.(type) {
			case *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
				t.Errorf("%s:%d: a core uses a channel", file.path, file.line(node.Pos()))
			}
			return true
		})
	}
}

// TestTestsDoNotSleepOrSkip: a test that sleeps is slow or wrong, and one that
// skips proves nothing.
func TestTestsDoNotSleepOrSkip(t *testing.T) {
	for _, file := range sources(t) {
		if !file.test || file.pkg == "cmd/ottla/internal/lint" {
			continue
		}
		ast.Inspect(file.tree, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			switch name := selector.Sel.Name; name {
			case "Skip", "Skipf", "SkipNow":
				t.Errorf("%s:%d: skips", file.path, file.line(node.Pos()))
			case "Sleep":
				if !virtualTime(file) {
					t.Errorf("%s:%d: sleeps in real time", file.path, file.line(node.Pos()))
				}
			}
			return true
		})
	}
}

// virtualTime tells a test file that runs under testing/synctest, where a sleep
// costs nothing and is exact.
func virtualTime(file source) bool {
	for _, imported := range file.imports() {
		if imported == "testing/synctest" {
			return true
		}
	}
	return false
}
