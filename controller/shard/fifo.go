package shard

// fifo is a queue that reuses its memory.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) size() int { return len(f.items) - f.head }

func (f *fifo[T]) push(item T) {
	if f.head > 64 && f.head > len(f.items)/2 {
		rest := copy(f.items, f.items[f.head:])
		clear(f.items[rest:])
		f.items, f.head = f.items[:rest], 0
	}
	f.items = append(f.items, item)
}

// at gives the i-th from the front; it stays where it is.
func (f *fifo[T]) at(i int) *T { return &f.items[f.head+i] }

func (f *fifo[T]) front() *T { return f.at(0) }

func (f *fifo[T]) pop() T {
	var none T
	item := f.items[f.head]
	f.items[f.head] = none
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
		if cap(f.items) > 1024 {
			f.items = nil // what a burst needed is not kept
		}
	}
	return item
}
