//go:build race

package wire

// Under the race detector append(a, make([]T, n)...) makes n elements twice.
const allocationFactor = 2
