//go:build mutants

package sim

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// mostSeeds is within how many seeds each mutant must be found.
const mostSeeds = "300"

var foundBy = regexp.MustCompile(`seed (\d+) after [^:]*: (.*)`)

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
			began := time.Now()
			output, err := m.Run(t, root, "TestSeeds$", "./cmd/ottla/internal/sim", "OTTLA_SIM_SEEDS="+mostSeeds, "OTTLA_SIM_FIRST=1")
			found := foundBy.FindStringSubmatch(output)
			if err == nil || found == nil {
				t.Fatalf("not found within %s seeds: %v\n%s", mostSeeds, err, output)
			}
			t.Logf("seed %s, %v: %.200s", found[1], time.Since(began).Round(time.Second), found[2])
		})
	}
}
