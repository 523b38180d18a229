package compress

import "sync"

// output is what a decoder appends to. It grows by what was written, never by
// what a header promises, and stops at the limit.
type output struct {
	bytes []byte
	start int // what lies before was the caller's
	limit int // of bytes after start

	spares *sync.Pool // of *[]byte
}

// firstGuess is what an output may grow to before it has shown its size, by
// the size of the compressed input.
func firstGuess(sourceBytes int) int { return 4*sourceBytes + 1024 }

func (o *output) written() int { return len(o.bytes) - o.start }

func (o *output) left() int { return o.limit - o.written() }

// room gives the spare capacity that may be written to, at most the limit,
// growing the slice if there is none. It is empty at the limit only.
func (o *output) room(sourceBytes int) []byte {
	left := o.left()
	if left <= 0 {
		return nil
	}
	if len(o.bytes) == cap(o.bytes) {
		o.grow(min(left, max(o.written(), firstGuess(sourceBytes))))
	}
	spare := o.bytes[len(o.bytes):cap(o.bytes)]
	return spare[:min(left, len(spare))]
}

// reserve makes room for n bytes that are known to come, or refuses.
func (o *output) reserve(n int) ([]byte, error) {
	if n > o.left() {
		return nil, ErrTooLarge
	}
	o.grow(n)
	return o.bytes[len(o.bytes) : len(o.bytes)+n : len(o.bytes)+n], nil
}

// grow makes room for n bytes more: exactly, so that a buffer of the limit's size
// is not outgrown by rounding, but at least by half, unless that is beyond the
// limit.
func (o *output) grow(n int) {
	if cap(o.bytes)-len(o.bytes) >= n {
		return
	}
	size := min(max(len(o.bytes)+n, len(o.bytes)*3/2), o.start+max(o.limit, o.written()+n))
	o.bytes = append(make([]byte, 0, size), o.bytes...)
}

// commit counts n bytes of room or reserve as written.
func (o *output) commit(n int) { o.bytes = o.bytes[:len(o.bytes)+n] }

func (o *output) write(data []byte) error {
	room, err := o.reserve(len(data))
	if err != nil {
		return err
	}
	o.commit(copy(room, data))
	return nil
}
