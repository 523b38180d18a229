// Package mutant plants a bug for a moment, for a test to show that it would be found: a passage of a source file is replaced in
// a copy, which the compiler takes by -overlay. The sources themselves hold no hook, and a passage that is not there any more
// is an error.
//
// It is not a list of bugs: each simulation has its own. Only tests use it.
package mutant

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Mutant is a bug.
type Mutant struct {
	Name  string
	File  string // from the root of the module
	Edits []Edit
	// Bug is the number of the bug of another system that it is, in the list of its simulation; 0: of none.
	Bug int
	// Tests and Package are what must find it, if that is not the seeds of the simulation whose list it is in.
	Tests, Package string
}

// Edit is a passage that occurs once, and what takes its place.
type Edit [2]string

// source gives the file with the bug in it.
func (m *Mutant) source(root string) (string, error) {
	source, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return "", err
	}
	text := string(source)
	for _, e := range m.Edits {
		if strings.Count(text, e[0]) != 1 {
			return "", fmt.Errorf("%s does not hold this passage once: %s", m.File, e[0])
		}
		text = strings.Replace(text, e[0], e[1], 1)
	}
	return text, nil
}

// Fit fails the test for each mutant whose passages are not where they are thought to be. root is that of the module.
func Fit(t *testing.T, root string, mutants []Mutant) {
	t.Helper()
	for i := range mutants {
		if _, err := mutants[i].source(root); err != nil {
			t.Errorf("%s: %v", mutants[i].Name, err)
		}
	}
}

var foundBy = regexp.MustCompile(`seed (\d+) after [^:]*: .*`)

// Hunt plants one bug after the other, of which OTTLA_SIM_MUTANT chooses some by name, and fails for each that is not found: within
// the first seeds of the simulation in pkg, or by the mutant's own tests.
func Hunt(t *testing.T, mutants []Mutant, pkg, seeds string) {
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	for i := range mutants {
		m := &mutants[i]
		if !strings.Contains(m.Name, os.Getenv("OTTLA_SIM_MUTANT")) {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			tests, in := "TestSeeds$", pkg
			if m.Tests != "" {
				tests, in = m.Tests, m.Package
			}
			output, err := m.Run(t, root, tests, in, "OTTLA_SIM_SEEDS="+seeds, "OTTLA_SIM_FIRST=1")
			found := foundBy.FindString(output)
			if found == "" && strings.Contains(output, "--- FAIL") && tests != "TestSeeds$" {
				found = output[strings.Index(output, "--- FAIL"):]
			}
			if err == nil || found == "" {
				t.Fatalf("not found: %v\n%s", err, output)
			}
			t.Logf("%.200s", found)
		})
	}
}

// Run runs tests of a package with the mutant in place, with additions to the environment, and gives what they printed and how
// they ended. root is that of the module, absolute.
func (m *Mutant) Run(t *testing.T, root, tests, pkg string, env ...string) (output string, err error) {
	t.Helper()
	text, err := m.source(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, m.File): changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{changed: []byte(text), overlay: replace} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command("go", "test", "-overlay", overlay, "-vet=off", "-count=1", "-run", tests, pkg)
	command.Dir = root
	command.Env = append(os.Environ(), env...)
	printed, err := command.CombinedOutput()
	return string(printed), err
}
