// Package memory knows how much memory this process may use, and tells Go's collector of it.
//
// What it is: the limits of control groups and of the machine; the soft limit of the heap; less work for the collector while
// the node starts. What it is not: it divides nothing among the parts of the node, which cmd/ottla/internal/node does.
//
// Who calls it: cmd/ottla/internal/node, once, when it runs a node. Start reading at memory.go.
package memory
