// Package latency counts how long things took, in little memory however many they are, and tells which share took no longer than what.
//
// It is not a clock: durations are handed to it. compat/bench calls it, from many goroutines at once. Start reading at histogram.go.
package latency
