package segment

import (
	"errors"
	"fmt"
	"io"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/wire"
)

// Found is a stretch of whole batches of one segment.
type Found struct {
	Region    wire.Region
	FirstBase protocol.Offset // base offset of the first batch
	// Next is the base offset of the batch after the stretch, or -1 if it reaches the end that was asked for.
	Next protocol.Offset
}

// ErrBeyond says that no batch of the segment, up to the limit, holds the offset or a later one.
var ErrBeyond = errors.New("the segment ends before that offset")

// Read finds whole batches, from the first one that ends at or after from, up to maxBytes. Of the .log only limit
// bytes are looked at. bound is the first offset that may not be contained, or -1 if all up to limit may. With
// atLeastOne the first batch is given even if it alone is larger.
func (s *Segment) Read(from protocol.Offset, maxBytes int64, bound protocol.Offset, limit int64, atLeastOne bool) (Found, error) {
	if err := s.log.pin(false); err != nil {
		return Found{}, err
	}
	found, err := s.read(from, maxBytes, bound, limit, atLeastOne)
	if err != nil || found.Region.Source == nil {
		s.log.Release()
	}
	return found, err
}

func (s *Segment) read(from protocol.Offset, maxBytes int64, bound protocol.Offset, limit int64, atLeastOne bool) (Found, error) {
	// The generation is taken first: a truncation that comes between makes the region stale.
	generation := s.log.Generation()
	c := s.borrow(0, limit)
	defer s.giveBack(c)
	first, err := s.seek(c, from)
	if errors.Is(err, io.EOF) {
		return Found{}, ErrBeyond
	}
	if err != nil {
		return Found{}, err
	}
	start, afterFirst := first.Position, first.Header.NextOffset()
	found := Found{FirstBase: first.Header.BaseOffset(), Next: protocol.NoOffset}
	if bound != protocol.NoOffset && first.Header.LastOffset() >= bound {
		found.Next = found.FirstBase
		return found, nil
	}
	firstEnd, end := start+first.Size, limit
	if bound != protocol.NoOffset {
		if end, found.Next, err = s.endBefore(c, bound, limit); err != nil {
			return Found{}, err
		}
	}
	switch {
	case end-start <= maxBytes:
	case start+maxBytes >= firstEnd:
		if end, found.Next, err = s.trim(c, start, start+maxBytes, limit); err != nil {
			return Found{}, err
		}
	case atLeastOne:
		end, found.Next = firstEnd, afterFirst
	default:
		end, found.Next = start, found.FirstBase
	}
	if end > start {
		found.Region = wire.Region{Source: s.log, Position: start, Length: end - start, Generation: generation}
	}
	return found, nil
}

// endBefore finds where the first batch begins that reaches bound.
func (s *Segment) endBefore(c *cursor, bound protocol.Offset, limit int64) (int64, protocol.Offset, error) {
	b, err := s.seek(c, bound)
	if errors.Is(err, io.EOF) {
		return limit, protocol.NoOffset, nil
	}
	if err != nil {
		return 0, 0, err
	}
	return b.Position, b.Header.BaseOffset(), nil
}

// seek walks to the first batch that ends at or after offset. io.EOF: there is none.
func (s *Segment) seek(c *cursor, offset protocol.Offset) (Batch, error) {
	hint, err := s.floorOffset(offset)
	if err == nil && hint.Position > 0 {
		b, err := s.seekFrom(c, hint, offset)
		if err == nil || errors.Is(err, io.EOF) || !isDamage(err) {
			return b, err
		}
	}
	if err != nil || hint.Position > 0 {
		s.damaged.Store(true)
	}
	b, err := s.seekFrom(c, OffsetEntry{Offset: s.base}, offset)
	return b, s.explain(err)
}

func (s *Segment) seekFrom(c *cursor, hint OffsetEntry, offset protocol.Offset) (Batch, error) {
	c.start(s, hint.Position, c.end, c.scratch[:])
	for first := true; ; first = false {
		b, err := c.step()
		if err == io.EOF && first && hint.Position > 0 { //nolint:errorlint // step returns it bare
			return Batch{}, &Damage{s.LogName(), hint.Position, "the index points beyond the end"}
		}
		if err != nil {
			return Batch{}, err
		}
		if first && hint.Position > 0 && b.Header.BaseOffset() > hint.Offset {
			return Batch{}, &Damage{s.LogName(), hint.Position, "the index points at another batch"}
		}
		if b.Header.LastOffset() >= offset {
			return b, nil
		}
	}
}

// trim finds the last batch boundary that is not beyond target. Where the .log is damaged on the way, it is the last one
// before the damage.
func (s *Segment) trim(c *cursor, start, target, limit int64) (int64, protocol.Offset, error) {
	if hint, err := s.floorPosition(target); err == nil && hint.Position > start {
		end, next, err := s.boundary(c, hint.Position, target, limit)
		if !isDamage(err) {
			return end, next, err
		}
		s.damaged.Store(true)
	}
	end, next, err := s.boundary(c, start, target, limit)
	var damage *Damage
	if errors.As(err, &damage) && damage.Position > start {
		return damage.Position, c.next, nil
	}
	return end, next, s.explain(err)
}

// boundary walks to the batch that holds the byte at target, or begins there.
func (s *Segment) boundary(c *cursor, from, target, limit int64) (int64, protocol.Offset, error) {
	c.start(s, from, limit, c.scratch[:])
	for {
		b, err := c.step()
		if errors.Is(err, io.EOF) {
			return limit, protocol.NoOffset, nil
		}
		if err != nil {
			return 0, 0, err
		}
		if b.Position+b.Size > target {
			return b.Position, b.Header.BaseOffset(), nil
		}
	}
}

func isDamage(err error) bool {
	var damage *Damage
	return errors.As(err, &damage)
}

func (s *Segment) explain(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return fmt.Errorf("cannot read %s: %w", s.LogName(), err)
}

// Batches walks the batches of the segment from the one that ends at or after from, within limit bytes of the .log.
// The walk ends with the first error visit returns; ErrStop ends it without one. Damage in the .log is a *Damage.
func (s *Segment) Batches(from protocol.Offset, limit int64, visit func(Batch) error) error {
	if s.trail.covers(from, limit) {
		if err := s.trail.follow(from, visit); !errors.Is(err, ErrStop) {
			return err
		}
		return nil
	}
	if err := s.log.pin(false); err != nil {
		return err
	}
	defer s.log.Release()
	c := s.borrow(0, limit)
	b, err := s.seek(c, from)
	position, next := b.Position, s.base
	s.giveBack(c)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	span := s.cache.spans.Get().(*[spanBytes]byte)
	defer s.cache.spans.Put(span)
	var w walker
	w.start(s, position, limit, span[:])
	w.next = next
	for {
		b, err := w.step()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return s.explain(err)
		}
		if err := visit(b); err != nil {
			if errors.Is(err, ErrStop) {
				return nil
			}
			return err
		}
	}
}

// ErrStop ends a walk without an error.
var ErrStop = errors.New("enough")

// Load reads a whole batch that a walk met. It is the only place that copies record bytes to the heap.
func (s *Segment) Load(b Batch) (record.Batch, error) {
	if b.Size > int64(1<<31) {
		return nil, fmt.Errorf("a batch of %d bytes is too large", b.Size)
	}
	bytes := make([]byte, b.Size)
	if err := s.log.readFull(bytes, b.Position); err != nil {
		return nil, err
	}
	batch, rest, err := record.Next(bytes)
	if err != nil || len(rest) > 0 {
		return nil, fmt.Errorf("the batch at byte %d of %s changed while it was read", b.Position, s.LogName())
	}
	return batch, nil
}
