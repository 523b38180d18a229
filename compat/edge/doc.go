// Package edge attacks a node's listeners as a broken or hostile peer would: frames of wrong lengths, requests that announce more than
// they bring, batches that expand without end, connections that are slow, silent, half closed or never read, and floods of them. A
// good client goes on meanwhile, and every one of its requests must be answered.
//
// It knows nothing of the server but its address and asserts nothing itself: a function returns an error when the server did what it
// must not do, for instance answered nonsense. What the server's memory did is measured by the test that calls it.
//
// Start reading at attacks.go.
package edge
