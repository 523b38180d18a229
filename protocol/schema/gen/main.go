// Gen makes the codecs of package schema out of the files in definitions/.
//
// A definition is one line a record type and one line a field, fields of a
// struct indented by two more blanks under the field that first uses it:
//
//	kind key Name versions V flexible V
//	  name type V [null V] [tag N V] [default X] [ignorable]
//
// V is a range of versions: 0, 0-4, 3+ or none. Types are Kafka's (int8 int16
// uint16 int32 int64 float64 bool string bytes uuid), our distinct types for
// them (nodeId leaderEpoch brokerEpoch producerId producerEpoch offset), a
// struct by its capital name, or an array of these. A default that is not given
// is zero, the empty string or array; what can be null begins as null in line,
// and empty if it is tagged: that is what Kafka takes a tag's absence for. Lines
// that begin with "# " are comments.
//
// It is run by "go generate ottla/protocol/schema" and by nobody else.
package main

import (
	"fmt"
	"go/format"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gen DEFINITIONS-DIR OUTPUT-DIR")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(definitions, output string) error {
	for _, log := range []string{"metadata", "group", "transaction", "share"} {
		messages, err := parseFile(filepath.Join(definitions, log+".txt"))
		if err != nil {
			return err
		}
		source := emitFile(log, messages)
		pretty, err := format.Source(source)
		if err != nil {
			return fmt.Errorf("%s: the generated source is not Go: %w\n%s", log, err, source)
		}
		if err := os.WriteFile(filepath.Join(output, log+"_gen.go"), pretty, 0o644); err != nil {
			return err
		}
	}
	return nil
}
