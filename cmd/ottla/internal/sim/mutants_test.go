//go:build mutants

package sim

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// mostSeeds is within how many seeds each mutant must be found.
const mostSeeds = 300

var foundBy = regexp.MustCompile(`seed (\d+) after [^:]*: (.*)`)

// TestMutants plants one bug after the other; OTTLA_SIM_MUTANT chooses some by name.
func TestMutants(t *testing.T) {
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		if !strings.Contains(m.name, os.Getenv("OTTLA_SIM_MUTANT")) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			began := time.Now()
			output, err := m.run(t, root)
			found := foundBy.FindStringSubmatch(output)
			if err == nil || found == nil {
				t.Fatalf("not found within %d seeds: %v\n%s", mostSeeds, err, output)
			}
			t.Logf("seed %s, %v: %.200s", found[1], time.Since(began).Round(time.Second), found[2])
		})
	}
}

// run runs seeds with the mutant in place.
func (m mutant) run(t *testing.T, root string) (string, error) {
	t.Helper()
	text, err := m.source(root)
	if err != nil {
		t.Fatal(err)
	}
	original := filepath.Join(root, m.file)
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("go", "test", "-overlay", overlay, "-vet=off", "-count=1", "-run", "TestSeeds$", "./cmd/ottla/internal/sim")
	command.Dir = root
	command.Env = append(os.Environ(), "OTTLA_SIM_SEEDS=300", "OTTLA_SIM_FIRST=1")
	output, err := command.CombinedOutput()
	return string(output), err
}
