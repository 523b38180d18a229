package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"ottla/protocol"
	"ottla/storage/vfs"
)

// txnEntryBytes is the size of an entry of a .txnindex (AbortedTxn.json, version 0).
const txnEntryBytes = 34

// AbortedTxn is an aborted transaction whose marker is in the segment.
type AbortedTxn struct {
	ProducerID       protocol.ProducerID
	FirstOffset      protocol.Offset
	LastOffset       protocol.Offset // the marker's
	LastStableOffset protocol.Offset // of the log, just after the marker
}

func (t AbortedTxn) appendTo(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.ProducerID))
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.FirstOffset))
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.LastOffset))
	return binary.BigEndian.AppendUint64(dst, uint64(t.LastStableOffset))
}

// ErrTxnIndex says that a .txnindex is damaged.
var ErrTxnIndex = errors.New("the transaction index is damaged")

// DecodeTxnIndex reads a .txnindex; next is the first offset after the segment. Errors wrap ErrTxnIndex.
func DecodeTxnIndex(data []byte, base, next protocol.Offset) ([]AbortedTxn, error) {
	if len(data)%txnEntryBytes != 0 {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrTxnIndex, len(data))
	}
	list := make([]AbortedTxn, 0, len(data)/txnEntryBytes)
	before := base - 1
	for ; len(data) > 0; data = data[txnEntryBytes:] {
		t, version := decodeTxn(data)
		if version != 0 {
			return nil, fmt.Errorf("%w: an entry has version %d", ErrTxnIndex, version)
		}
		if t.LastOffset <= before || t.LastOffset >= next || t.FirstOffset < 0 || t.FirstOffset >= t.LastOffset ||
			t.LastStableOffset < 0 || t.LastStableOffset > t.LastOffset+1 {
			return nil, fmt.Errorf("%w: it says that a transaction from %d ended at %d", ErrTxnIndex, t.FirstOffset, t.LastOffset)
		}
		before = t.LastOffset
		list = append(list, t)
	}
	return list, nil
}

func decodeTxn(e []byte) (t AbortedTxn, version int16) {
	at := func(i int) uint64 { return binary.BigEndian.Uint64(e[i:]) }
	return AbortedTxn{
		protocol.ProducerID(at(2)), protocol.Offset(at(10)), protocol.Offset(at(18)), protocol.Offset(at(26)),
	}, int16(binary.BigEndian.Uint16(e))
}

// AddAborted appends to the .txnindex; the markers' offsets strictly rise.
func (s *Segment) AddAborted(t AbortedTxn) error {
	if t.LastOffset <= s.lastTxn {
		panic(fmt.Sprintf("segment: a transaction aborted at %d after one aborted at %d", t.LastOffset, s.lastTxn))
	}
	count := s.txnCount.Load()
	s.txnStale.Store(true)
	err := s.txn.with(true, func(file vfs.File) error {
		_, err := file.WriteAt(t.appendTo(nil), count*txnEntryBytes)
		if err != nil {
			_ = file.Truncate(count * txnEntryBytes) // of a part of an entry others would complain; the next one overwrites it
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot append to a transaction index: %w", err)
	}
	s.lastTxn = t.LastOffset
	s.txnCount.Store(count + 1)
	return nil
}

// Aborted calls visit for the transactions whose marker is at or after from, in the order of the markers, until
// it returns false. more tells that it never did.
func (s *Segment) Aborted(from protocol.Offset, visit func(AbortedTxn) bool) (more bool, err error) {
	count := int(s.txnCount.Load())
	if count == 0 {
		return true, nil
	}
	if err := s.txn.pin(false); err != nil {
		return false, err
	}
	defer s.txn.Release()
	scratch := s.cache.bufs.Get().(*[scratchBytes]byte)
	defer s.cache.bufs.Put(scratch)
	i, err := s.firstTxn(count, from, scratch[:txnEntryBytes])
	if err != nil {
		return false, err
	}
	for block := scratchBytes / txnEntryBytes; i < count; i += block {
		bytes := scratch[:min(block, count-i)*txnEntryBytes]
		if err := readAll(s.txn.file, bytes, int64(i)*txnEntryBytes); err != nil {
			return false, err
		}
		for ; len(bytes) > 0; bytes = bytes[txnEntryBytes:] {
			if t, _ := decodeTxn(bytes); t.LastOffset >= from && !visit(t) {
				return false, nil
			}
		}
	}
	return true, nil
}

func (s *Segment) firstTxn(count int, from protocol.Offset, scratch []byte) (int, error) {
	low, high := 0, count
	for low < high {
		middle := low + (high-low)/2
		if err := readAll(s.txn.file, scratch, int64(middle)*txnEntryBytes); err != nil {
			return 0, err
		}
		if t, _ := decodeTxn(scratch); t.LastOffset < from {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, nil
}

// ReadTxnIndex reads the whole .txnindex and checks it.
func (s *Segment) ReadTxnIndex(next protocol.Offset) ([]AbortedTxn, error) {
	data, err := vfs.ReadFile(s.cache.fs, s.txn.Name())
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read a transaction index: %w", err)
	}
	list, err := DecodeTxnIndex(data, s.base, next)
	if err == nil && len(list) > 0 {
		s.lastTxn = list[len(list)-1].LastOffset
	}
	return list, err
}

// WriteTxnIndex replaces the .txnindex. A file that would be empty is not made, but one that is there stays, since
// readers may have it open.
func (s *Segment) WriteTxnIndex(list []AbortedTxn) error {
	s.lastTxn = protocol.NoOffset
	s.txnCount.Store(0)
	s.txnStale.Store(true)
	if len(list) == 0 {
		if err := s.txn.with(false, func(file vfs.File) error { return file.Truncate(0) }); err != nil && !isMissing(err) {
			return fmt.Errorf("cannot empty a transaction index: %w", err)
		}
		return nil
	}
	var data []byte
	for _, t := range list {
		data = t.appendTo(data)
	}
	err := s.txn.with(true, func(file vfs.File) error {
		if _, err := file.WriteAt(data, 0); err != nil {
			return err
		}
		return file.Truncate(int64(len(data)))
	})
	if err != nil {
		return fmt.Errorf("cannot write a transaction index: %w", err)
	}
	s.lastTxn = list[len(list)-1].LastOffset
	s.txnCount.Store(int64(len(list)))
	return nil
}

// DropAborted drops the transactions whose marker is at or after offset. It writes nothing, since it is called when a
// disk is full, and readers find those that stay at any moment: without them they would take aborted records for
// committed ones. What the file keeps behind them when it cannot be cut is overwritten by the next one, or dropped when
// the log is opened.
func (s *Segment) DropAborted(offset protocol.Offset) error {
	kept, last, all := int64(0), protocol.NoOffset, true
	_, err := s.Aborted(s.base, func(t AbortedTxn) bool {
		if all = t.LastOffset < offset; all {
			kept, last = kept+1, t.LastOffset
		}
		return all
	})
	if err != nil || all {
		return err
	}
	s.lastTxn = last
	s.txnCount.Store(kept)
	s.txnStale.Store(true)
	if err := s.txn.with(false, func(file vfs.File) error { return file.Truncate(kept * txnEntryBytes) }); err != nil {
		return fmt.Errorf("cannot cut a transaction index: %w", err)
	}
	return nil
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
