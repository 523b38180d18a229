package log

import (
	"ottla/protocol"
	"ottla/storage/space"
)

// takeSpace takes a batch's bytes from what is left in the directory, once it was judged, and tells why they cannot be
// had. A repeat of what is in the log needs none and is answered as ever; a batch that comes too early because the one
// before it was refused is refused for the same reason, so that the producer sends both again. The metadata log asks
// nobody.
func (a *appender) takeSpace(e *Entry) *space.FullError {
	writer := space.Client
	switch e.Origin {
	case OriginRaft:
		return nil
	case OriginCoordinator, OriginMarker:
		writer = space.Internal
	}
	switch {
	case e.Duplicate:
		return nil
	case e.Err == nil:
		return a.env.Space.Admit(writer, int64(len(e.Batch)))
	case protocol.CodeOf(e.Err) == protocol.OutOfOrderSequenceNumber:
		return a.env.Space.Refusal(writer)
	}
	return nil
}
