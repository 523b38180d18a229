// Package lint holds the house rules as Go tests: which package may import
// which, where no goroutine, clock, lock or randomness may be, how long a
// function, a file and a package may grow, and which names are not used.
//
// It has no code of its own and nobody imports it. A rule that must give way
// gives way in the tables of this package, with the reason beside it, and
// nowhere else. Start reading at arrows_test.go.
package lint
