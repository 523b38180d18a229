// Package deadlines keeps the deadlines of those who wait on a node: appends for acks=all, long polls, deletions.
//
// What it is: a heap of timers behind a lock of its own. What it is not: a clock. Who owns it asks for Next, and calls
// Expire when that time has come. Only storage/replica calls it.
//
// Invariants: a timer's Expire runs once at most, never after Remove has returned and found it in, and never under the
// lock; equal deadlines expire in the order in which they were added.
//
// Start reading at deadlines.go.
package deadlines
