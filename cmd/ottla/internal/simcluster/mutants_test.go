//go:build mutants

package simcluster

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mostSeeds is within how many seeds each mutant must be found.
const mostSeeds = "1000"

var foundBy = regexp.MustCompile(`seed (\d+) after [^:]*: (.*)|(?s)(testdata/\S+).*?expected`)

// TestMutants plants one bug after the other; OTTLA_SIM_MUTANT chooses some by name.
func TestMutants(t *testing.T) {
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		if !strings.Contains(m.Name, os.Getenv("OTTLA_SIM_MUTANT")) {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			tests, pkg := "TestSeeds$", "./cmd/ottla/internal/simcluster"
			if m.Scripts {
				tests, pkg = "TestScripts$", "./storage/partition"
			}
			output, err := m.Run(t, root, tests, pkg, "OTTLA_SIM_SEEDS="+mostSeeds, "OTTLA_SIM_FIRST=1")
			found := foundBy.FindStringSubmatch(output)
			if err == nil || found == nil {
				t.Fatalf("not found within %s seeds: %v\n%s", mostSeeds, err, output)
			}
			t.Logf("seed %s %.200s%s", found[1], found[2], found[3])
		})
	}
}
