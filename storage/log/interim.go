package log

import (
	"errors"
	"slices"

	"ottla/protocol"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// interimBytes is how much may be appended until the producers, and the index entries that are in memory, are written down
// again. A start after a kill reads what came after them batch by batch.
const interimBytes = 256 << 10

// leftBytes is how much a start leaves unwritten, which is all but what kills one after another add up to: at a start of many logs
// writing costs more than reading, and Maintain comes soon after.
const leftBytes = 4 << 20

// interim is a snapshot of the producers within the active segment. Apache Kafka writes them when it rolls and when it
// stops; a start after a kill then goes through the whole segment. It is not synced: a start after a power cut, which may
// find a shorter log than it speaks of, does not read it.
type interim struct {
	at   protocol.Offset // of the file
	base protocol.Offset // of the segment that was active
	size int64           // which had so many bytes
	real bool
}

// renew writes the snapshot anew if enough was appended. Without room on the disk it is left for later.
func (i *interim) renew(l *Log) error {
	active := l.active()
	since := active.Size()
	if i.real && i.base == active.Base() {
		since -= i.size
	}
	if since < interimBytes {
		return nil
	}
	before := *i
	if err := errors.Join(active.Store(), l.takeSnapshot(l.end, false)); vfs.NoSpace(err) {
		return nil
	} else if err != nil {
		return l.poison(err)
	}
	*i = interim{at: l.end, base: active.Base(), size: active.Size(), real: true}
	return before.remove(l)
}

// short tells that the index files of the resumed last segment end so little before the .log that they can stay as they are,
// as during the life of the process that died.
func (o *opening) short(w segment.Walked) bool {
	missing, exact := o.active().Unstored(o.present[len(o.present)-1])
	return o.state.Trust == SameBoot && w.Damage == nil && exact && missing < leftBytes
}

// storeProducers writes the present producers down, unless so few bytes were replayed after the newest snapshot, which a process
// that died has left, that the log can go on with that one.
func (o *opening) storeProducers(replayed int64) error {
	active := o.active()
	found := interim{base: active.Base(), size: active.Size(), real: true}
	if n := len(o.snapshots); n > 0 {
		found.at = o.snapshots[n-1]
	}
	if o.state.Trust == SameBoot && o.resumed {
		unstored, _ := active.Unstored(o.present[len(o.present)-1])
		found.size -= max(unstored, replayed)
	}
	if missing := active.Size() - found.size; missing > 0 && missing < leftBytes {
		o.interim = found
		return nil
	}
	o.interim = interim{at: o.end, base: active.Base(), size: active.Size(), real: true}
	if err := o.storeSnapshot(o.end); err != nil {
		return err
	}
	return found.remove(o.Log)
}

// remove removes the file, unless a segment begins there or it is the newest.
func (i *interim) remove(l *Log) error {
	n, found := slices.BinarySearch(l.snapshots, i.at)
	if !i.real || !found || n == len(l.snapshots)-1 {
		return nil
	}
	if at := holding(l.segments, i.at); at >= 0 && l.segments[at].Base() == i.at {
		return nil
	}
	if err := l.removeSnapshot(i.at); err != nil {
		return l.poison(err)
	}
	return nil
}
