// Package nextgen holds the scenarios of the group protocol consumer (KIP-848), the next generation: what a client must be able to do with it,
// written once over the words of package scenario, and what a client cannot.
//
// It needs a node with Properties, and runs by compat/run.sh consumers. Its invariants are those of package scenario.
//
// Start reading at consumergroups.go.
package nextgen
