// Package serve is the Go end of the drivers' protocol: a program that wraps a client library written in Go hands it a
// suite.Client, and it answers commands in lines of JSON as compat/java/Driver.java and compat/python/driver.py do. The other end
// is package driver.
//
// Such programs are modules of their own (compat/sarama, compat/kafkago), so that their libraries stay out of this module. What
// the client cannot do, by the interfaces of package suite, is answered with an error.
//
// Invariants: every command gets exactly one answer; commands run at the same time.
//
// Start reading at serve.go.
package serve
