package wire

import "errors"

// What decoding may find. All are reasons to close the connection.
var (
	// ErrMalformed is in the chain of every error about bytes that are no Kafka
	// message.
	ErrMalformed = errors.New("malformed message")
	// ErrUnknownAPI says that the key is none that Apache Kafka 4.4.0 has.
	ErrUnknownAPI = errors.New("unknown API key")
	// ErrUnsupportedVersion says that Apache Kafka 4.4.0 has the API, but not in
	// this version.
	ErrUnsupportedVersion = errors.New("unsupported API version")
	// ErrTooLarge says that decoding the message would take more memory than
	// its bytes account for: its counts are a bomb.
	ErrTooLarge = errors.New("message would expand beyond its bound")
	// ErrStaleRegion says that the file was truncated after the region was
	// chosen.
	ErrStaleRegion = errors.New("the segment was truncated under the region")
)
