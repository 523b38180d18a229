//go:build !race

package segment

// pooledTimes is how often one call may allocate a buffer of the pool anew: once, when the collector has just emptied it.
const pooledTimes = 1
