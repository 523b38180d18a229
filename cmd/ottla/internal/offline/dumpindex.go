package offline

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"ottla/cmd/ottla/internal/batches"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/vfs"
)

// Sizes of index entries in bytes (OffsetIndex.java, TimeIndex.java, AbortedTxn.json).
const (
	offsetEntryBytes = 8
	timeEntryBytes   = 12
	txnEntryBytes    = 34
)

// eachEntry calls visit for the entries of an index, up to the zeros that Apache Kafka keeps at the end of the
// indexes of an active segment.
func (d *dumper) eachEntry(entryBytes int, visit func(position int64, entry []byte)) error {
	data, err := vfs.ReadFile(d.fsys, d.name)
	if err != nil {
		return err
	}
	used := len(data)
	for used > 0 && data[used-1] == 0 {
		used--
	}
	used = (used + entryBytes - 1) / entryBytes * entryBytes // an entry may end with zeros
	used = min(used, len(data))
	whole := used / entryBytes * entryBytes
	for at := 0; at < whole; at += entryBytes {
		visit(int64(at), data[at:at+entryBytes])
	}
	if whole < used {
		d.damage(int64(whole), "the last entry has %d bytes, not %d", used-whole, entryBytes)
	} else if rest := len(data) - used; rest > 0 {
		d.line("# %d zero bytes follow, as in the index of an active segment", rest)
	}
	return nil
}

// place is where a batch lies in the .log beside an index.
type place struct {
	position     int64
	base, last   protocol.Offset
	maxTimestamp int64
}

// batchPlaces walks the .log beside an index up to its end or to damage; nil if there is none.
func (d *dumper) batchPlaces() ([]place, error) {
	name := d.name
	for _, suffix := range retired {
		name = strings.TrimSuffix(name, suffix)
	}
	tail := strings.TrimPrefix(d.name, name)
	walk, err := batches.Open(d.fsys, name[:strings.LastIndexByte(name, '.')]+".log"+tail)
	if errors.Is(err, fs.ErrNotExist) {
		d.line("# the .log is not beside it, so the entries are not compared with it")
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer walk.Close()
	places := []place{}
	for {
		found, err := walk.Next()
		var stop *batches.Misplaced
		switch {
		case errors.Is(err, io.EOF):
			return places, nil
		case errors.As(err, &stop):
			d.line("# the .log is damaged from byte %d on, so later entries are not compared with it", walk.Position())
			return places, nil
		case err != nil:
			return nil, err
		}
		places = append(places, placeOf(found.Header, found.Position))
	}
}

func placeOf(header record.Batch, position int64) place {
	return place{position, header.BaseOffset(), header.LastOffset(), header.MaxTimestamp()}
}

func (d *dumper) dumpOffsetIndex(first protocol.Offset) error {
	d.line("# the offset index of the segment from offset %d", first)
	places, err := d.batchPlaces()
	if err != nil {
		return err
	}
	lastOffset, lastPosition := first-1, int64(-1)
	return d.eachEntry(offsetEntryBytes, func(at int64, entry []byte) {
		offset := first + protocol.Offset(int32(binary.BigEndian.Uint32(entry)))
		position := int64(int32(binary.BigEndian.Uint32(entry[4:])))
		d.line("offset=%d position=%d", offset, position)
		if offset <= lastOffset || position <= lastPosition {
			d.damage(at, "the entry (%d, %d) does not rise above the one before it, (%d, %d)", offset, position, lastOffset, lastPosition)
		}
		lastOffset, lastPosition = max(offset, lastOffset), max(position, lastPosition)
		for len(places) > 1 && places[1].position <= position {
			places = places[1:]
		}
		switch {
		case places == nil:
		case len(places) == 0 || places[0].position != position:
			d.damage(at, "no batch begins at position %d", position)
		case offset < places[0].base:
			d.damage(at, "the batch at position %d begins at offset %d, after %d", position, places[0].base, offset)
		}
	})
}

func (d *dumper) dumpTimeIndex(first protocol.Offset) error {
	d.line("# the time index of the segment from offset %d", first)
	places, err := d.batchPlaces()
	if err != nil {
		return err
	}
	lastTimestamp, lastOffset := int64(-1), first-1
	return d.eachEntry(timeEntryBytes, func(at int64, entry []byte) {
		timestamp := int64(binary.BigEndian.Uint64(entry))
		offset := first + protocol.Offset(int32(binary.BigEndian.Uint32(entry[8:])))
		d.line("timestamp=%d offset=%d", timestamp, offset)
		if timestamp < lastTimestamp || offset < lastOffset {
			d.damage(at, "the entry (%d, %d) lies below the one before it, (%d, %d)", timestamp, offset, lastTimestamp, lastOffset)
		}
		lastTimestamp, lastOffset = max(timestamp, lastTimestamp), max(offset, lastOffset)
		for len(places) > 1 && places[0].last < offset {
			places = places[1:]
		}
		switch {
		case places == nil:
		case len(places) == 0 || offset > places[0].last:
			d.damage(at, "the segment does not reach offset %d", offset)
		case offset >= places[0].base && timestamp != places[0].maxTimestamp:
			d.damage(at, "the largest timestamp of the batch of offset %d is %d, not %d", offset, places[0].maxTimestamp, timestamp)
		}
	})
}

func (d *dumper) dumpTxnIndex() error {
	d.line("# aborted transactions")
	data, err := vfs.ReadFile(d.fsys, d.name)
	if err != nil {
		return err
	}
	before := protocol.Offset(-1)
	for at := 0; at < len(data); at += txnEntryBytes {
		if len(data)-at < txnEntryBytes {
			d.damage(int64(at), "the last entry has %d bytes, not %d", len(data)-at, txnEntryBytes)
			break
		}
		entry := data[at:]
		version := int16(binary.BigEndian.Uint16(entry))
		field := func(i int) int64 { return int64(binary.BigEndian.Uint64(entry[2+8*i:])) }
		first, last := protocol.Offset(field(1)), protocol.Offset(field(2))
		d.line("producer=%d firstOffset=%d lastOffset=%d lastStableOffset=%d version=%d", field(0), first, last, field(3), version)
		if reason := txnReason(version, first, last, before); reason != "" {
			d.damage(int64(at), "%s", reason)
		}
		before = max(before, last)
	}
	return nil
}

func txnReason(version int16, first, last, before protocol.Offset) string {
	switch {
	case version != 0:
		return fmt.Sprintf("the entry has version %d, not 0", version)
	case first < 0 || first >= last:
		return fmt.Sprintf("a transaction cannot go from offset %d to %d", first, last)
	case last <= before:
		return fmt.Sprintf("the marker at offset %d comes after one at %d", last, before)
	}
	return ""
}
