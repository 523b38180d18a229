//go:build mutants

package simbrokers

import (
	"testing"

	"ottla/cmd/ottla/internal/mutant"
)

// TestMutants plants one bug after the other; OTTLA_SIM_MUTANT chooses some by name.
func TestMutants(t *testing.T) { mutant.Hunt(t, mutants, "./cmd/ottla/internal/simbrokers", "400") }
