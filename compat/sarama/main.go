// Command sarama is github.com/IBM/sarama as a client of the compatibility suite: it answers commands in lines of JSON on standard
// input and output (package serve). It is a module of its own, so that the library stays out of the project's.
//
// It holds no scenario. Start reading at client.go.
package main

import (
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/IBM/sarama"

	"ottla/compat/serve"
	"ottla/compat/suite"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "-debug" {
		sarama.Logger = log.New(os.Stderr, "", log.Lmicroseconds)
	}
	err := serve.Run(os.Stdin, os.Stdout, func(addr string) suite.Client { return &client{addr} }, errorName)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the sarama driver:", err)
		os.Exit(1)
	}
}

// errorName is Kafka's name of an error of the library.
func errorName(err error) string {
	var code sarama.KError
	switch {
	case errors.As(err, &code):
		return suite.ErrorNameOfCode(int16(code))
	case errors.Is(err, sarama.ErrMessageTooLarge):
		return "MESSAGE_TOO_LARGE"
	}
	return ""
}
