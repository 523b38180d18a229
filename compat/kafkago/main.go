// Command kafkago is github.com/segmentio/kafka-go as a client of the compatibility suite: it answers commands in lines of JSON on
// standard input and output (package serve). It is a module of its own, so that the library stays out of the project's.
//
// It holds no scenario. Start reading at client.go.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/segmentio/kafka-go"

	"ottla/compat/serve"
	"ottla/compat/suite"
)

func main() {
	err := serve.Run(os.Stdin, os.Stdout, func(addr string) suite.Client { return &client{addr} }, errorName)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the kafka-go driver:", err)
		os.Exit(1)
	}
}

// errorName is Kafka's name of an error of the library.
func errorName(err error) string {
	var code kafka.Error
	if errors.As(err, &code) {
		return suite.ErrorNameOfCode(int16(code))
	}
	return ""
}
