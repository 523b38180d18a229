// Package driver speaks to the clients of the suite that are not written in Go: a program started once for each (a JVM, a
// Python interpreter, Node.js) that takes commands as lines of JSON and answers with lines of JSON. The other ends are
// compat/java/Driver.java, compat/python/driver.py and compat/node/driver.js. The Java one also runs Kafka's command-line tools.
//
// It holds no scenario. Invariants: every command gets exactly one answer, or an error when the program has ended; commands may
// run at the same time.
//
// Start reading at process.go; client.go puts the suite's interfaces over it, console.go those of the console tools.
package driver
