// Command bench measures Ottla and Apache Kafka side by side, in one run on one machine: both servers run all the time, and
// rounds alternate between them, so that what else the machine does falls on both. A figure is the median of its rounds.
//
// Load that is to judge a broker must not cost the client much where the two share the processors: requests are framed once
// (frame.go), only sequence and checksum change from one to the next; answers are looked at where they lie; fetched records
// are thrown away by the kernel. Real clients stand beside it (clients.go). A rate is held without coordinated omission: a
// latency counts from the moment at which the record was to be sent, whatever came between (rate.go).
//
// Lines of RF 3 (cluster.go) are measured on three brokers of each kind, each set under a controller of Apache Kafka of its own; loads
// go to each partition's leader, and what the brokers use is added up.
//
// The broker's processor time is read from /proc, its peak of memory too, reset before each round. How large the batches were that
// a client gathered is read from the segments (stored.go).
//
// It is not a test: nothing fails because it is slow. A wrong answer of a server does fail it.
//
// Invariants: both servers get the same requests, configuration and number of rounds, and one unmeasured round before; every
// acknowledged batch was answered without error.
//
// Start reading at main.go, then lines.go.
package main
