package segment

import "ottla/protocol"

// EndBelow finds the batch that holds offset, where a log can be cut: position is where it begins, end that of the batch before it.
// Where compaction has left a gap end is below offset, since a start would find no other.
func (s *Segment) EndBelow(offset protocol.Offset) (end protocol.Offset, position int64, err error) {
	at := offset
	position = s.Size()
	err = s.Batches(offset, position, func(b Batch) error {
		at, position = min(at, b.Header.BaseOffset()), b.Position
		return ErrStop
	})
	if err != nil || position == 0 {
		return s.Base(), position, err
	}
	err = s.Batches(at-1, position, func(b Batch) error {
		end = b.Header.NextOffset()
		return ErrStop
	})
	if err != nil || end == at {
		return end, position, err
	}
	end = s.Base()
	err = s.Batches(end, position, func(b Batch) error {
		end = b.Header.NextOffset()
		return nil
	})
	return end, position, err
}
