// Package diff sends the same raw requests to Ottla and to Apache Kafka and
// writes down what they answer, one line a response, so that the two can be
// compared: every field of every version counts, not only what some client
// looks at.
//
// A Teller keeps the connections and the lines. What differs from run to run (the
// member ids that a coordinator makes, topic ids, ports) gets a name of its own by
// the order of its first mention, and lists that have no order (groups, members)
// are sorted. Tell tells one book of stories; each file beside teller.go is one
// theme, and README.md says which behaviour is tested where. generated.go makes
// requests of every API and version by rules. compare.go compares with the record
// and knows what may differ, by allowed.txt.
//
// The test that runs it is compat/diff_test.go. What Apache Kafka answered is
// recorded under testdata/control/.
package diff
