// Package datadir hands directories over between versions of Apache Kafka and Ottla, and tells whether anything changed.
//
// It runs a JVM of any version of Apache Kafka (java/Handover.java), in which that version's own server, clients and tools fill a
// directory and open it again; it takes down what a server shows of its topics, groups and transactions (Take), and it goes on
// writing to a server as a user would (GoOn).
//
// What it is not: a test; compat/datadir_test.go judges. It knows nothing of Ottla's inside.
//
// Invariants: a Snapshot of the same state is the same whoever serves it; a JVM is ended by Close or Kill, by its own process id.
//
// Start reading at compat/datadir_test.go, then snapshot.go.
package datadir
