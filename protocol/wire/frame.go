package wire

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// Frame is the bytes of one message without the 4-byte length, pooled and
// counted. Only Produce requests, and Fetch responses that a follower receives,
// are read into a Frame; everything else belongs to the garbage collector.
//
// A Frame starts with one reference. When the last is released the bytes are
// used again for another message, so nobody may look at them after his Release.
type Frame struct {
	Bytes      []byte
	references atomic.Int32
	abandoned  atomic.Bool
	onRelease  func()
}

// Pooled frames come in four sizes for every power of two, so that at most a
// quarter of one is unused.
const (
	smallestPooledFrame = 1 << 10  // bytes; below, the garbage collector is as good
	largestPooledFrame  = 16 << 20 // bytes; above, a pool would only hoard
	frameClasses        = 4*(24-10) + 1
)

var framePools [frameClasses]sync.Pool

// NewFrame gives a frame of size bytes with one reference. The bytes are not
// zeroed. onRelease (may be nil) is called once, after the last Release: the
// owner of a memory budget gets its bytes back.
func NewFrame(size int, onRelease func()) *Frame {
	if size > largestPooledFrame {
		return startFrame(&Frame{Bytes: make([]byte, size)}, onRelease)
	}
	class, room := frameClass(size)
	f, _ := framePools[class].Get().(*Frame)
	if f == nil {
		f = &Frame{Bytes: make([]byte, room)}
	}
	f.Bytes = f.Bytes[:size]
	return startFrame(f, onRelease)
}

func startFrame(f *Frame, onRelease func()) *Frame {
	f.onRelease = onRelease
	f.references.Store(1)
	return f
}

// frameClass gives the pool whose frames hold size bytes, and how many they hold.
func frameClass(size int) (class, room int) {
	if size <= smallestPooledFrame {
		return 0, smallestPooledFrame
	}
	shift := bits.Len(uint(size-1)) - 3 // the size in quarters of its power of two: 4 to 7, rounded up
	quarters := (size-1)>>shift + 1
	return 4*(shift-8) + quarters - 4, quarters << shift
}

// Retain adds a reference. Only someone who holds one may call it.
func (f *Frame) Retain() {
	if f.references.Add(1) <= 1 {
		panic("wire: a Frame was retained after its last release")
	}
}

// Release drops a reference; the last one gives the bytes back to the pool.
func (f *Frame) Release() {
	switch left := f.references.Add(-1); {
	case left > 0:
		return
	case left < 0:
		panic("wire: a Frame was released more often than retained")
	}
	onRelease := f.onRelease
	f.onRelease = nil
	if f.abandoned.Load() {
		if onRelease != nil {
			onRelease()
		}
		return
	}
	f.Bytes = f.Bytes[:cap(f.Bytes)]
	if poisonFrames {
		for i := range f.Bytes {
			f.Bytes[i] = 0xDB
		}
	}
	if class, room := frameClass(len(f.Bytes)); len(f.Bytes) == room && room <= largestPooledFrame {
		framePools[class].Put(f)
	}
	if onRelease != nil {
		onRelease()
	}
}

// Abandon is Release where a system call that was given up may still read the bytes: they are never used again, though
// the memory counts as given back.
func (f *Frame) Abandon() {
	f.abandoned.Store(true)
	f.Release()
}

// PoisonFrames makes every later last Release overwrite the frame, so that a
// test sees a use after release. It is for tests and not for concurrent use.
func PoisonFrames(on bool) { poisonFrames = on }

var poisonFrames bool
