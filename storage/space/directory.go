package space

import (
	"fmt"
	"sync/atomic"
	"syscall"
)

// State is how a directory stands; a higher one refuses more.
type State int32

const (
	Roomy    State = iota // everyone may write
	Low                   // clients may not
	Critical              // the node's own topics may not either
)

func (s State) String() string {
	return [...]string{"roomy", "low", "critical"}[s]
}

// Writer is who wants to append.
type Writer int8

const (
	Client   Writer = iota // a producer's records, and copies of them
	Internal               // coordinators, and the markers of transactions
)

// FullError says that a directory has too little room for a writer. It passes when there is room again, as ENOSPC does,
// which it is for errors.Is.
type FullError struct {
	Path   string
	Usable int64 // bytes that are left, as far as is known
	Mark   int64 // bytes that must be left for this writer
}

func (e *FullError) Error() string {
	return fmt.Sprintf("the disk of %s is nearly full: %d bytes are free and %d must be; writes go on when there is room again", e.Path, e.Usable, e.Mark)
}

// Is makes it a case of ENOSPC.
func (e *FullError) Is(target error) bool { return target == syscall.ENOSPC }

// Directory is the space of one log directory. The zero value is not usable; a nil *Directory refuses nobody. It is safe for
// concurrent use, and asking costs a few atomic reads.
type Directory struct {
	path string
	// Wake, if set before the first use, is told, perhaps often, that a look is wanted soon. It must not block.
	Wake func()

	settings atomic.Pointer[Settings]
	last     atomic.Pointer[look]
	admitted atomic.Int64 // bytes over the life of the directory
	state    atomic.Int32
	hurried  atomic.Bool // Wake was called since the last look
}

// look is what one look at the file system has found, and what follows.
type look struct {
	total, usable int64
	admitted      int64 // when it began
	limits        limits
}

// New makes the space of a directory that nobody has looked at yet.
func New(path string, settings Settings) *Directory {
	d := &Directory{path: path}
	d.settings.Store(&settings)
	return d
}

// Path is the directory's.
func (d *Directory) Path() string { return d.path }

// Set changes the marks, which count from the next look on.
func (d *Directory) Set(settings Settings) {
	d.settings.Store(&settings)
	d.wake()
}

// Begin is called before the file system is asked; Looked wants what it gives.
func (d *Directory) Begin() (admitted int64) { return d.admitted.Load() }

// Looked tells what the file system has said, and gives the states before and after. One look at a time.
func (d *Directory) Looked(begun, totalBytes, usableBytes int64) (before, after State) {
	found := &look{total: totalBytes, usable: usableBytes, admitted: begun, limits: limitsFor(totalBytes, *d.settings.Load())}
	before = d.State()
	after = found.limits.next(before, usableBytes)
	d.last.Store(found)
	d.hurried.Store(false)
	// Who found the mark passed meanwhile counted from the look before, and finds it again if it still is.
	d.state.Store(int32(after))
	return before, after
}

// State is how the directory stands.
func (d *Directory) State() State {
	if d == nil {
		return Roomy
	}
	return State(d.state.Load())
}

// Usage is what the last look has found, and the two marks; all 0 before the first.
func (d *Directory) Usage() (totalBytes, usableBytes, clientsMark, internalMark int64) {
	if l := d.found(); l != nil {
		return l.total, l.usable, l.limits.clients, l.limits.internal
	}
	return 0, 0, 0, 0
}

func (d *Directory) found() *look {
	if d == nil {
		return nil
	}
	return d.last.Load()
}

// Refusal tells why a writer may not write now, or nil. It takes nothing.
func (d *Directory) Refusal(w Writer) *FullError {
	found := d.found()
	if found == nil || d.State() <= State(w) {
		return nil
	}
	return d.refusal(found, w, d.admitted.Load())
}

func (d *Directory) refusal(found *look, w Writer, admitted int64) *FullError {
	mark := found.limits.clients
	if w == Internal {
		mark = found.limits.internal
	}
	if State(w) < d.State() {
		mark += mark / hysteresis // what must be free for it to be taken again
	}
	return &FullError{Path: d.path, Usable: max(0, found.usable-(admitted-found.admitted)), Mark: mark}
}

// Admit takes so many bytes for a writer, or tells why not. What was taken and is then not written counts until the next
// look.
func (d *Directory) Admit(w Writer, bytes int64) *FullError {
	found := d.found()
	if found == nil {
		return nil
	}
	if refused := d.Refusal(w); refused != nil {
		return refused
	}
	admitted := d.admitted.Add(bytes)
	left := found.usable - (admitted - found.admitted)
	mark := found.limits.clients
	if w == Internal {
		mark = found.limits.internal
	}
	if mark <= 0 || left >= mark {
		if left-mark < (found.usable-mark)/2 {
			d.wake() // half of what there was is gone: see how much it really is
		}
		return nil
	}
	admitted = d.admitted.Add(-bytes)
	d.raise(State(w) + 1)
	d.wake()
	return d.refusal(found, w, admitted)
}

// raise makes the state at least so.
func (d *Directory) raise(to State) {
	for {
		at := d.state.Load()
		if at >= int32(to) || d.state.CompareAndSwap(at, int32(to)) {
			return
		}
	}
}

// Affords tells whether background work that makes room in the end, as compaction does, may write so many bytes first: what
// it leaves must be the reserve at least. It takes nothing. The refusal says why not.
func (d *Directory) Affords(bytes int64) *FullError {
	found := d.found()
	if found == nil {
		return nil
	}
	left := found.usable - (d.admitted.Load() - found.admitted)
	if mark := found.limits.internal; mark > 0 && left-bytes < mark {
		return &FullError{Path: d.path, Usable: max(0, left), Mark: mark + bytes}
	}
	return nil
}

// wake asks for a look, once until it has come.
func (d *Directory) wake() {
	if d.Wake != nil && d.hurried.CompareAndSwap(false, true) {
		d.Wake()
	}
}

// Calm is told when a look has found nothing: the next is as due as ever.
func (d *Directory) Calm() { d.hurried.Store(false) }

// Hurried tells that a look is wanted soon.
func (d *Directory) Hurried() bool { return d.hurried.Load() }
