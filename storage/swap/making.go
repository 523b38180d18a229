package swap

import (
	"errors"
	"sync"

	"ottla/protocol"
	"ottla/storage/segment"
)

// Making is the segment that compaction is making of a log, in .cleaned files, or what could not be removed of one. It is safe for
// concurrent use, but the caller keeps the log's directory from being renamed during Begin and Drop.
type Making struct {
	mu      sync.Mutex
	segment *segment.Segment
}

// Segment is that one; nil: there is none.
func (m *Making) Segment() *segment.Segment {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.segment
}

func (m *Making) set(s *segment.Segment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.segment = s
}

// Begin makes an empty segment, after it has removed what was left of another one: its .cleaned files would have a start undo the
// swap of this one. sync makes the names in the directory durable.
func (m *Making) Begin(cache *segment.FileCache, dir string, base protocol.Offset, opts segment.Options, modifiedMs int64, sync func() error) (*segment.Segment, error) {
	if err := m.Drop(sync); err != nil {
		return nil, err
	}
	s, err := segment.CreateCleaned(cache, dir, base, opts, modifiedMs)
	m.set(s)
	if err != nil {
		return nil, errors.Join(err, m.Drop(sync))
	}
	return s, nil
}

// Drop removes the segment's files. It goes on with what an earlier call could not remove.
func (m *Making) Drop(sync func() error) error {
	s := m.Segment()
	if s == nil {
		return nil
	}
	begun, err := s.RemoveSwap()
	if err == nil && begun {
		err = sync()
	}
	if err == nil {
		err = s.Remove()
	}
	if err == nil {
		m.set(nil)
	}
	return err
}

// Done says that the segment is made, and the log's.
func (m *Making) Done() { m.set(nil) }
