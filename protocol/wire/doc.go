// Package wire turns bytes of a Kafka connection into kmsg messages and back:
// frames, request and response headers, the gate that keeps tagged fields out
// of versions that do not have them, the guard that keeps a hostile count from
// becoming memory, and the Fetch response, which is the one message encoded by
// our own code, because its record bytes stay in their segment files until the
// socket takes them.
//
// It is not a connection: it reads no socket, starts no goroutine and knows no
// clock. protocol/server and protocol/client call it for every message; storage
// makes Regions; the api package fills a FetchResponse.
//
// Invariants:
//   - No function panics on foreign bytes, and decoding allocates at most
//     64 bytes for every input byte plus 64 KiB.
//   - A Frame and a Region with a Source are counted by hand: whoever is handed
//     one releases it exactly once, on every path, errors included.
//   - What AppendResponse writes is byte for byte what Apache Kafka 4.4.0 would
//     write for the same values.
//
// Start reading at header.go, then region.go and fetch.go.
package wire
