package segment

import (
	"encoding/binary"
	"fmt"
	"math"

	"ottla/protocol"
)

// Bytes of an entry of the .index and of the .timeindex.
const (
	OffsetEntryBytes = 8
	TimeEntryBytes   = 12
)

// OffsetEntry says that the batch whose last offset is Offset begins at Position in the .log (OffsetIndex.java:
// relative offset int32, position int32).
type OffsetEntry struct {
	Offset   protocol.Offset
	Position int64
}

// TimeEntry says that no batch up to the one that ends at Offset has a larger timestamp than TimestampMs
// (TimeIndex.java: timestamp int64, relative offset int32).
type TimeEntry struct {
	TimestampMs int64
	Offset      protocol.Offset
}

func (s *Segment) decodeOffset(entry []byte) OffsetEntry {
	return OffsetEntry{
		s.base + protocol.Offset(int32(binary.BigEndian.Uint32(entry))),
		int64(int32(binary.BigEndian.Uint32(entry[4:]))),
	}
}

func (s *Segment) decodeTime(entry []byte) TimeEntry {
	return TimeEntry{
		int64(binary.BigEndian.Uint64(entry)),
		s.base + protocol.Offset(int32(binary.BigEndian.Uint32(entry[8:]))),
	}
}

// Fits tells whether offset can be written relative to the segment's base.
func (s *Segment) Fits(offset protocol.Offset) bool {
	return offset >= s.base && offset-s.base <= math.MaxInt32
}

func (s *Segment) relative(offset protocol.Offset) uint32 {
	if !s.Fits(offset) {
		panic(fmt.Sprintf("segment: offset %d does not fit into the segment that begins at %d", offset, s.base))
	}
	return uint32(offset - s.base)
}

// addOffset appends to the offset index; entries strictly rise.
func (s *Segment) addOffset(e OffsetEntry) {
	if s.offsets.len() > 0 && (e.Offset <= s.lastEntry.Offset || e.Position <= s.lastEntry.Position) {
		panic(fmt.Sprintf("segment: index entry (%d, %d) after (%d, %d) in the segment that begins at %d",
			e.Offset, e.Position, s.lastEntry.Offset, s.lastEntry.Position, s.base))
	}
	var entry [OffsetEntryBytes]byte
	binary.BigEndian.PutUint32(entry[:], s.relative(e.Offset))
	binary.BigEndian.PutUint32(entry[4:], uint32(e.Position))
	s.offsets.append(entry[:])
	s.lastEntry = e
}

// addTime appends to the time index unless the timestamp is not larger than the last entry's.
func (s *Segment) addTime(e TimeEntry) {
	if e.TimestampMs <= s.lastTime.TimestampMs {
		return
	}
	if s.times.len() > 0 && e.Offset < s.lastTime.Offset {
		panic(fmt.Sprintf("segment: time index entry (%d, %d) after (%d, %d) in the segment that begins at %d",
			e.TimestampMs, e.Offset, s.lastTime.TimestampMs, s.lastTime.Offset, s.base))
	}
	var entry [TimeEntryBytes]byte
	binary.BigEndian.PutUint64(entry[:], uint64(e.TimestampMs))
	binary.BigEndian.PutUint32(entry[8:], s.relative(e.Offset))
	s.times.append(entry[:])
	s.lastTime = e
}

// floorOffset finds the last index entry whose offset is not above the given one; without one it is the
// segment's start.
func (s *Segment) floorOffset(offset protocol.Offset) (OffsetEntry, error) {
	entry, i, err := s.offsets.last(func(e []byte) bool { return s.decodeOffset(e).Offset <= offset })
	if err != nil || i < 0 {
		return OffsetEntry{Offset: s.base}, err
	}
	return s.decodeOffset(entry[:]), nil
}

// floorPosition finds the last index entry whose position is not above the given one.
func (s *Segment) floorPosition(position int64) (OffsetEntry, error) {
	entry, i, err := s.offsets.last(func(e []byte) bool { return s.decodeOffset(e).Position <= position })
	if err != nil || i < 0 {
		return OffsetEntry{Offset: s.base}, err
	}
	return s.decodeOffset(entry[:]), nil
}

// floorTime finds the last time index entry whose timestamp is not above the given one.
func (s *Segment) floorTime(timestampMs int64) (TimeEntry, error) {
	entry, i, err := s.times.last(func(e []byte) bool { return s.decodeTime(e).TimestampMs <= timestampMs })
	if err != nil || i < 0 {
		return TimeEntry{-1, s.base}, err
	}
	return s.decodeTime(entry[:]), nil
}

// indexFull tells that one of the indexes may take no further entry after some more (segment.index.bytes).
func (s *Segment) indexFull(more int) bool {
	return s.offsets.len()+more >= s.opts.IndexBytes/OffsetEntryBytes ||
		s.times.len()+more >= s.opts.IndexBytes/TimeEntryBytes-1
}
