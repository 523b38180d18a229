// Package props reads and writes Java property files: server.properties,
// meta.properties, client.properties.
//
// It is the format and nothing else: it knows no key, expands no variables and
// opens no file; callers hand in bytes. It reads bytes as
// java.util.Properties.load(InputStream) does, one ISO-8859-1 character a
// byte, and writes plain ASCII, which every reader of the format understands.
//
// It is called by cmd/ottla (settings), by offline and by storage/store
// (meta.properties). Invariants: Parse accepts exactly what Java accepts and
// gives the same keys and values; the last of several equal keys wins, and
// keeps the place of the first. Start reading at parse.go.
package props
