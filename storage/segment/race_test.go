//go:build race

package segment

// pooledTimes is how often one call may allocate a buffer of the pool anew: under the race detector sync.Pool forgets what is put
// back now and then, on purpose.
const pooledTimes = 8
