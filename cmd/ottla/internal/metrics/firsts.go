package metrics

import (
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/wire"
	"ottla/storage/partition"
	"ottla/storage/replica"
)

const (
	// readBytes and readTime bound what one scrape reads from logs for the lag in
	// seconds. What is left unread is not known, and comes first next time.
	readBytes = 8 << 20
	readTime  = 500 * time.Millisecond
)

// firstKey names the first record at or after an offset.
type firstKey struct {
	partition protocol.TopicPartition
	topicID   protocol.TopicID
	offset    protocol.Offset
}

// firsts finds the timestamps of first unconsumed records. They are remembered as
// long as each scrape asks for them again: a group that stands still is read once.
type firsts struct {
	source Source
	now    time.Time
	known  map[firstKey]int64
	wanted map[firstKey]bool
	order  []firstKey // of those that are not known
	last   firstKey   // the first that the last scrape left unread
}

func (f *firsts) begin(source Source, now time.Time) {
	f.source, f.now, f.wanted, f.order = source, now, map[firstKey]bool{}, nil
}

func keyOf(d *replica.Description, committed protocol.Offset) firstKey {
	return firstKey{d.Partition, d.View.TopicID, max(committed, d.LogStartOffset)}
}

// want asks for the first record that is not consumed, if there is one and it is here.
func (f *firsts) want(d *replica.Description, committed protocol.Offset) {
	if d == nil || d.View.Role != partition.Leader || committed >= d.HighWatermark {
		return
	}
	key := keyOf(d, committed)
	if f.wanted[key] {
		return
	}
	f.wanted[key] = true
	if _, known := f.known[key]; !known {
		f.order = append(f.order, key)
	}
}

// read reads what was asked for and is not known, within the bounds, and forgets
// what nobody asked for.
func (f *firsts) read() {
	for key := range f.known {
		if !f.wanted[key] {
			delete(f.known, key)
		}
	}
	if f.known == nil {
		f.known = map[firstKey]int64{}
	}
	start := 0
	for i, key := range f.order {
		if key.partition == f.last.partition {
			start = i
			break
		}
	}
	end, left := f.source.Now().Add(readTime), readBytes
	for i := range f.order {
		key := f.order[(start+i)%len(f.order)]
		if left <= 0 || f.source.Now().After(end) {
			f.last = key
			return
		}
		timestampMs, read, found := f.first(key)
		if left -= read; found {
			f.known[key] = timestampMs
		}
	}
}

func (f *firsts) of(d *replica.Description, committed protocol.Offset) (timestampMs int64, known bool) {
	timestampMs, known = f.known[keyOf(d, committed)]
	return timestampMs, known
}

// first reads the timestamp of one record, as a tool would: it does not count as a
// consumer's fetch.
func (f *firsts) first(key firstKey) (timestampMs int64, readBytes int, found bool) {
	var result replica.FetchResult
	f.source.Replicas.Fetch(f.now, replica.FetchRequest{
		Partitions: []replica.FetchPartition{{
			Partition: key.partition, TopicID: key.topicID, Offset: key.offset, MaxBytes: 1,
			CurrentLeaderEpoch: protocol.NoLeaderEpoch, LastFetchedEpoch: protocol.NoLeaderEpoch, FollowerLogStart: protocol.NoOffset,
		}},
		Replica: replica.Debugging, ReplicaEpoch: -1, MaxBytes: 1, Version: fetchVersion,
	}, func(results []replica.FetchResult) { result = results[0] }) // at once, as it waits for nothing
	defer result.Records.Release()
	if result.Err != nil || result.Records.Len() < record.HeaderSize {
		return 0, 0, false
	}
	return f.timestamp(result.Records, key.offset)
}

// fetchVersion is a version of Fetch that may read from any replica.
const fetchVersion = 17

// timestamp finds the first record at or after offset in a region that begins with
// its batch. The batch's header says it if the record is the batch's first, or if
// all have the same time; else the batch is read.
func (f *firsts) timestamp(region wire.Region, offset protocol.Offset) (timestampMs int64, readBytes int, found bool) {
	header := make(record.Batch, record.HeaderSize)
	if region.ReadAt(header, 0) != nil {
		return 0, len(header), false
	}
	if header.IsLogAppendTime() {
		return header.MaxTimestamp(), len(header), true
	}
	if offset <= header.BaseOffset() || header.BaseTimestamp() == header.MaxTimestamp() {
		return header.BaseTimestamp(), len(header), true
	}
	bytes, err := region.ReadAll()
	readBytes = len(header) + len(bytes)
	if err != nil {
		return 0, readBytes, false
	}
	batch, _, err := record.Next(bytes)
	if err != nil {
		return 0, readBytes, false
	}
	for r, err := range record.Records(batch, f.source.Pool, decompressedBytes) {
		if err != nil {
			break
		}
		if r.Offset >= offset {
			return r.Timestamp, readBytes, true
		}
	}
	return 0, readBytes, false
}

// decompressedBytes bounds what a batch may expand to here; of a larger one the
// time is not known.
const decompressedBytes = 16 << 20
