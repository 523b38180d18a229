// Package logconfig is what a topic's configuration asks of the logs of its partitions (LogConfig.java).
//
// What it is not: it parses nothing and knows no precedence; cmd/ottla/internal/broker resolves what is configured where.
//
// Who calls it: storage/log, under whose names everybody else knows it.
//
// Start reading at options.go.
package logconfig
