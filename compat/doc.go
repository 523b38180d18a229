// Package compat is the black-box compatibility suite: it starts the built Ottla binary, or Apache Kafka, and lets real
// clients and Kafka's own tools judge. Everything here is a test under the build tag compat, run by run.sh (make compat);
// without the tag `go test ./...` sees nothing of it.
//
// It is not a unit test of anything and imports nothing of the server: only processes, sockets and files.
//
// Tests: TestClients (clients × scenarios), TestTools (Kafka's command-line tools), TestDump (Apache Kafka reads a directory
// that the server left), TestCrash (kill -9 under load), TestMeasure (start, memory, size). Scenarios are in package
// scenario, servers in package harness. README.md says how to run them and how to add a client or a scenario.
package compat
