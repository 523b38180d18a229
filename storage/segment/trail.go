package segment

import (
	"ottla/protocol"
	"ottla/protocol/record"
)

// trail is what the walk of a segment that is being opened has met, in order and without a gap. Those who ask for the same
// batches then, for the producers and the leader epochs, are given these.
type trail struct {
	steps []footstep
	lost  bool // there were too many
}

type footstep struct {
	header         [record.HeaderSize]byte
	position, size int64
}

// trailMost bounds a trail: more batches are walked again.
const trailMost = 4096

// leave makes a walk leave a trail, if the segment is being opened.
func (s *Segment) leave(visit func(Batch) error) func(Batch) error {
	if !s.opening {
		return visit
	}
	if s.trail == nil {
		s.trail = s.cache.trails.Get().(*trail)
	}
	t := s.trail
	t.steps, t.lost = t.steps[:0], false
	return func(b Batch) error {
		if t.lost = t.lost || len(t.steps) == trailMost; !t.lost {
			t.steps = append(t.steps, footstep{[record.HeaderSize]byte(b.Header), b.Position, b.Size})
		}
		if visit == nil {
			return nil
		}
		return visit(b)
	}
}

// opened ends what is kept for a start.
func (s *Segment) opened() {
	s.opening = false
	s.offsets.unload()
	s.times.unload()
	if s.trail != nil {
		s.cache.trails.Put(s.trail)
		s.trail = nil
	}
}

func (f *footstep) batch() Batch {
	return Batch{Header: f.header[:], Position: f.position, Size: f.size}
}

// covers tells that the trail has all batches from the one that ends at or after an offset up to limit.
func (t *trail) covers(from protocol.Offset, limit int64) bool {
	if t == nil || t.lost || len(t.steps) == 0 {
		return false
	}
	first, last := &t.steps[0], &t.steps[len(t.steps)-1]
	return last.position+last.size == limit && (first.position == 0 || first.batch().Header.BaseOffset() <= from)
}

// follow visits the batches from the one that ends at or after an offset; see Segment.Batches.
func (t *trail) follow(from protocol.Offset, visit func(Batch) error) error {
	for i := range t.steps {
		b := t.steps[i].batch()
		if b.Header.LastOffset() < from {
			continue
		}
		if err := visit(b); err != nil {
			return err
		}
	}
	return nil
}
