// Package suites judges a run of the tests that a client library ships in its own module: franz-go's package kgo, and
// segmentio/kafka-go whole. They run against the node as they are, but for kafka-go's address, which its tests have written into
// them.
//
// exceptions.txt is the one list of tests that may not pass, each with the reason. A listed test that passes fails the run, as does
// one that fails, is skipped or never ends without being listed; so the list says exactly what is missing.
//
// modules/ pins the versions. The tests themselves are run by the part `suites` of ../run.sh (suites_test.go beside it); install.sh
// brings the modules.
//
// Start reading at suites.go.
package suites
