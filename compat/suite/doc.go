// Package suite holds what every part of the compatibility suite shares: the words in which a scenario speaks to a client
// (records, produce and consume options, Kafka's error names), the interfaces that the clients implement, and the table
// of results with the control column beside it.
//
// It holds no scenario (package scenario) and no client (packages franz, kcat, driver, console). A client implements
// Client and those of the smaller interfaces that it can express; which client takes part in which scenario is written
// down in the list of scenarios, so a client that lacks an interface it was listed for fails instead of being skipped.
//
// Invariants: errors that come from a server carry Kafka's own name for the code (MESSAGE_TOO_LARGE), whatever the client
// calls it; a nil key or value is null, an empty one is empty.
//
// Start reading at client.go.
package suite
