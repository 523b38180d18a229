package log

import (
	"ottla/protocol"
	"ottla/storage/space"
)

// takeSpace takes a judged batch's bytes from what is left in the directory, or tells why not. A repeat of what is in the
// log needs none, and a batch that comes too early because the one before it was refused is refused for the same reason.
func (a *appender) takeSpace(e *Entry) *space.FullError {
	writer := space.Client
	if e.Origin == OriginCoordinator || e.Origin == OriginMarker {
		writer = space.Internal
	}
	switch {
	case e.Duplicate || e.Origin == OriginRaft: // the metadata log asks nobody
		return nil
	case protocol.CodeOf(e.Err) == protocol.OutOfOrderSequenceNumber:
		return a.env.Space.Refusal(writer)
	case e.Err != nil:
		return nil
	}
	return a.env.Space.Admit(writer, int64(len(e.Batch)))
}
