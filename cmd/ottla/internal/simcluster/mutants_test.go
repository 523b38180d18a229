//go:build mutants

package simcluster

import (
	"encoding/json"
	"os"
	"os/exec"
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
		if !strings.Contains(m.name, os.Getenv("OTTLA_SIM_MUTANT")) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			output, err := m.run(t, root)
			found := foundBy.FindStringSubmatch(output)
			if err == nil || found == nil {
				t.Fatalf("not found within %s seeds: %v\n%s", mostSeeds, err, output)
			}
			t.Logf("seed %s %.200s%s", found[1], found[2], found[3])
		})
	}
}

// run runs seeds, or the stories, with the mutant in place.
func (m *mutant) run(t *testing.T, root string) (string, error) {
	t.Helper()
	text, err := m.source(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, m.file): changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{changed: []byte(text), overlay: replace} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run, where := "TestSeeds$", "./cmd/ottla/internal/simcluster"
	if m.scripts {
		run, where = "TestScripts$", "./storage/partition"
	}
	command := exec.Command("go", "test", "-overlay", overlay, "-vet=off", "-count=1", "-run", run, where)
	command.Dir = root
	command.Env = append(os.Environ(), "OTTLA_SIM_SEEDS="+mostSeeds, "OTTLA_SIM_FIRST=1")
	output, err := command.CombinedOutput()
	return string(output), err
}
