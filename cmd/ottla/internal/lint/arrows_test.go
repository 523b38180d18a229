package lint

import (
	"slices"
	"strings"
	"testing"
)

// arrows says which packages of this module each package may import besides
// what those may import themselves (arrows are transitive). A package that is
// not listed may not exist.
var arrows = map[string][]string{
	"protocol":            {},
	"protocol/wire":       {"protocol"},
	"protocol/compress":   {"protocol"},
	"protocol/sasl":       {"protocol"},
	"protocol/schema":     {"protocol/wire"},
	"protocol/schema/gen": {"protocol"},
	"protocol/wire/gen":   {"protocol"},
	"protocol/record":     {"protocol/compress"},
	"protocol/server":     {"protocol/wire", "protocol/sasl"},
	"protocol/client":     {"protocol/wire", "protocol/sasl"},

	"storage/props":       {"protocol"},
	"storage/vfs":         {"protocol"},
	"storage/guard":       {"storage/vfs"},
	"storage/segment":     {"storage/vfs", "protocol/record", "protocol/wire"},
	"storage/producer":    {"protocol/record"},
	"storage/checkpoint":  {"storage/vfs", "protocol"},
	"storage/epochs":      {"storage/segment", "storage/checkpoint"},
	"storage/bytime":      {"storage/segment"},
	"storage/replay":      {"storage/segment", "storage/producer"},
	"storage/space":       {},
	"storage/swap":        {"storage/segment"},
	"storage/logconfig":   {"protocol/compress"},
	"storage/groupcommit": {"storage/vfs"},
	"storage/log":         {"storage/space", "storage/segment", "storage/swap", "storage/producer", "storage/epochs", "storage/bytime", "storage/replay", "storage/logdir", "storage/logconfig", "storage/groupcommit"},
	"storage/clean":       {"storage/log"},
	"storage/logdir":      {"storage/checkpoint", "storage/props"},
	"storage/store":       {"storage/log", "storage/clean", "storage/logdir"},
	"storage/partition":   {"protocol"},
	"storage/move":        {"storage/log"},
	"storage/follow":      {"storage/log"},
	"storage/deadlines":   {},
	"storage/traffic":     {"protocol"},
	"storage/replica":     {"storage/log", "storage/partition", "storage/store", "storage/move", "storage/follow", "storage/deadlines", "storage/traffic", "protocol/client"},
	"storage/fetcher":     {"storage/replica", "storage/move"},

	"controller/machine":  {"protocol"},
	"controller/raft":     {"protocol"},
	"controller/config":   {"protocol"},
	"controller/metadata": {"protocol/record", "protocol/schema"},
	"controller/acl":      {"controller/metadata", "controller/config"},
	"controller/cluster":  {"controller/machine", "controller/metadata", "controller/config", "controller/acl"},
	"controller/txn":      {"controller/machine", "controller/metadata", "controller/config", "protocol/schema"},
	"controller/assign":   {"protocol"},
	"controller/consumer": {"controller/machine", "controller/metadata", "controller/config", "controller/assign", "protocol/schema"},
	"controller/offsets":  {"controller/machine", "protocol/schema"},
	"controller/group":    {"controller/machine", "controller/metadata", "controller/config", "controller/consumer", "controller/offsets", "protocol/schema", "controller/acl"},
	"controller/quorum":   {"controller/raft", "controller/machine", "controller/metadata", "storage/log", "protocol/client"},
	"controller/shard":    {"controller/machine", "controller/metadata", "storage/replica", "protocol/client"},

	"cmd/ottla/internal/session": {"below"},
	"cmd/ottla/internal/quota":   {"below"},
	"cmd/ottla/internal/broker":  {"below"},
	"cmd/ottla/internal/batches": {"below"},
	"cmd/ottla/internal/offline": {"cmd/ottla/internal/batches"},
	"cmd/ottla/internal/check":   {"cmd/ottla/internal/batches"},
	"cmd/ottla/internal/api": {
		"below", "cmd/ottla/internal/session", "cmd/ottla/internal/quota", "cmd/ottla/internal/broker", "cmd/ottla/internal/offline",
	},
	"cmd/ottla/internal/metrics":    {"cmd/ottla/internal/api"},
	"cmd/ottla/internal/memory":     {},
	"cmd/ottla/internal/node":       {"cmd/ottla/internal/memory", "cmd/ottla/internal/metrics"},
	"cmd/ottla/internal/seeded":     {"storage/vfs"},
	"cmd/ottla/internal/mutant":     {},
	"cmd/ottla/internal/sim":        {"cmd/ottla/internal/node", "cmd/ottla/internal/check", "cmd/ottla/internal/seeded", "cmd/ottla/internal/mutant", "compat/history"},
	"cmd/ottla/internal/simcluster": {"below", "cmd/ottla/internal/session", "cmd/ottla/internal/seeded", "cmd/ottla/internal/mutant"},
	"cmd/ottla/internal/simbrokers": {"cmd/ottla/internal/node", "cmd/ottla/internal/seeded", "cmd/ottla/internal/mutant"},
	"cmd/ottla/internal/lint":       {},
	"cmd/ottla":                     {"cmd/ottla/internal/node", "cmd/ottla/internal/check"},

	"compat/history": {}, // a checker, pure, which the simulator uses too
}

// absences are arrows that transitivity would allow and the design does not.
var absences = map[string][]string{
	"cmd/ottla/internal/api": {"storage/segment", "storage/vfs"},
	"controller/quorum":      {"controller/cluster"},
	"controller/shard":       {"controller/group", "controller/txn"},
}

// below stands for everything in protocol, storage and controller.
func below(path string) bool {
	return path == "protocol" || strings.HasPrefix(path, "protocol/") || strings.HasPrefix(path, "storage/") ||
		strings.HasPrefix(path, "controller/")
}

func mayImport(from, to string) bool {
	seen := map[string]bool{}
	var reach func(string) bool
	reach = func(at string) bool {
		if seen[at] {
			return false
		}
		seen[at] = true
		for _, next := range arrows[at] {
			if next == to || next == "below" && below(to) || next != "below" && reach(next) {
				return true
			}
		}
		return false
	}
	return reach(from)
}

func TestArrows(t *testing.T) {
	for _, file := range sources(t) {
		if strings.HasPrefix(file.pkg, "compat") {
			continue // compat/ is black box: the compiler keeps it out of cmd/ottla/internal
		}
		if _, listed := arrows[file.pkg]; !listed {
			t.Errorf("%s: package %s is not in the table of arrows", file.path, file.pkg)
			continue
		}
		for _, imported := range file.imports() {
			to, ours := strings.CutPrefix(imported, "ottla/")
			if !ours || to == file.pkg {
				continue
			}
			if file.test && below(to) && below(file.pkg) && layer(to) <= layer(file.pkg) {
				continue // a test may use its neighbours, but nothing from higher up
			}
			if !mayImport(file.pkg, to) {
				t.Errorf("%s: %s may not import %s", file.path, file.pkg, to)
			}
			if !file.test && slices.Contains(absences[file.pkg], to) {
				t.Errorf("%s: %s must not import %s, whatever else it may", file.path, file.pkg, to)
			}
		}
	}
}

func layer(pkg string) int {
	top, _, _ := strings.Cut(pkg, "/")
	return slices.Index([]string{"protocol", "storage", "controller", "cmd"}, top)
}

// TestArrowsAreAcyclic keeps the table itself honest.
func TestArrowsAreAcyclic(t *testing.T) {
	for pkg := range arrows {
		if mayImport(pkg, pkg) {
			t.Errorf("%s reaches itself", pkg)
		}
	}
}
