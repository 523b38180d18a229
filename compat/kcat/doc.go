// Package kcat is kcat (Debian's 1.7, librdkafka 2.0 inside) as a client of the compatibility suite: each call runs the
// program, and reads records and delivery reports from what it prints.
//
// It cannot express everything: headers are those of a whole run, empty keys and values do not exist (an empty message is
// skipped, or null with -Z), there is no admin. The list of scenarios knows that.
//
// Start reading at kcat.go.
package kcat
