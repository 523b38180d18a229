// Package franz is franz-go (kgo, kadm) as a client of the compatibility suite. It is also the suite's reference: it
// prepares topics for clients that have no admin and reads back what others wrote.
//
// It holds no scenario. Each call makes a client of its own, so that no connection, session or metadata of one scenario
// reaches the next.
//
// Start reading at franz.go.
package franz
