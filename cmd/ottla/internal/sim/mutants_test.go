//go:build mutants

package sim

import (
	"testing"

	"ottla/cmd/ottla/internal/mutant"
)

// TestMutants plants one bug after the other; OTTLA_SIM_MUTANT chooses some by name.
func TestMutants(t *testing.T) { mutant.Hunt(t, mutants, "./cmd/ottla/internal/sim", "300") }
