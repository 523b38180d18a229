package offline

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"ottla/cmd/ottla/internal/batches"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/protocol/schema"
)

func (d *dumper) dumpLog(first protocol.Offset) error {
	d.line("# a segment of %s from offset %d", nameOr(d.topic(), "an unknown topic"), first)
	decode := decoderOf(d.topic())
	_, err := d.dumpBatches(first, d.options.Deep, decode, func(record.Batch) {})
	return err
}

func nameOr(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}

// dumpBatches prints all batches of the file, whose offsets begin at first, and gives the offset after the last.
func (d *dumper) dumpBatches(first protocol.Offset, deep bool, decode decoder, visit func(record.Batch)) (protocol.Offset, error) {
	walk, err := batches.Open(d.fsys, d.name)
	if err != nil {
		return 0, err
	}
	defer walk.Close()
	next := first
	for {
		found, err := walk.Next()
		var stop *batches.Misplaced
		switch {
		case errors.Is(err, io.EOF):
			return next, nil
		case errors.As(err, &stop) && walk.Zeros():
			d.damage(walk.Position(), "from here to the end at %d there are only zeros", walk.Size())
			return next, nil
		case errors.As(err, &stop):
			d.damage(walk.Position(), "%s; what follows, up to %d, cannot be read", stop.Reason, walk.Size())
			return next, nil
		case err != nil:
			return next, err
		}
		if base, last := found.Header.BaseOffset(), found.Header.LastOffset(); base < next || last < base {
			d.damage(found.Position, "the batch begins at offset %d, but %d is next", base, next)
		} else if last-first > math.MaxInt32 {
			d.damage(found.Position, "the batch ends at offset %d, which is too far from %d for one file", last, first)
		}
		next = max(next, found.Header.NextOffset())
		batch, err := walk.Load(found)
		if err != nil {
			return next, err
		}
		d.dumpBatch(batch, found.Position, deep, decode)
		visit(batch)
	}
}

func (d *dumper) dumpBatch(b record.Batch, position int64, deep bool, decode decoder) {
	var extra strings.Builder
	if b.HasProducerID() {
		fmt.Fprintf(&extra, " producer=%d producerEpoch=%d sequences=%d..%d", b.ProducerID(), b.ProducerEpoch(), b.BaseSequence(), b.LastSequence())
	}
	if b.IsTransactional() {
		extra.WriteString(" transactional")
	}
	if b.IsControl() {
		extra.WriteString(" control")
	}
	if b.HasDeleteHorizon() {
		fmt.Fprintf(&extra, " deleteHorizon=%d", b.BaseTimestamp())
	}
	d.line("position=%d offsets=%d..%d records=%d bytes=%d leaderEpoch=%d %s=%d codec=%s crc=%08x%s",
		position, b.BaseOffset(), b.LastOffset(), b.Count(), b.Size(), b.PartitionLeaderEpoch(),
		b.TimestampType(), b.MaxTimestamp(), b.Codec(), b.CRC(), extra.String())
	if err := b.CheckCRC(); err != nil {
		d.damage(position, "%v", err)
		return
	}
	if !deep && !b.IsControl() {
		return
	}
	for r, err := range record.Records(b, d.pool, d.options.MaxDecompressed) {
		if err != nil {
			d.damage(position, "%v", err)
			return
		}
		text, err := describeRecord(b, r, decode)
		d.line("  offset=%d %s=%d %s", r.Offset, b.TimestampType(), r.Timestamp, text)
		if err != nil {
			d.damage(position, "the record at offset %d: %v", r.Offset, err)
		}
	}
}

// decoder prints what the record of a topic that brokers write means.
type decoder func(r record.Record) (string, error)

func decoderOf(topic string) decoder {
	switch topic {
	case protocol.ClusterMetadataTopic:
		return decodeMetadata
	case protocol.ConsumerOffsetsTopic:
		return decodeCoordinator(schema.GroupLog)
	case protocol.TransactionStateTopic:
		return decodeCoordinator(schema.TransactionLog)
	case protocol.ShareGroupStateTopic:
		return decodeCoordinator(schema.ShareLog)
	default:
		return func(r record.Record) (string, error) { return describePlain(r), nil }
	}
}

func describeRecord(b record.Batch, r record.Record, decode decoder) (string, error) {
	if b.IsControl() {
		return describeControl(r)
	}
	text, err := decode(r)
	if err != nil {
		return describePlain(r), err
	}
	return text, nil
}

func describePlain(r record.Record) string {
	text := "key=" + quote(r.Key) + " value=" + quote(r.Value)
	for i, h := range r.Headers {
		if i == 0 {
			text += " headers:"
		}
		text += " " + quote(h.Key) + "=" + quote(h.Value)
	}
	return text
}

func quote(b []byte) string {
	if b == nil {
		return "null"
	}
	return strconv.Quote(string(b))
}

func decodeMetadata(r record.Record) (string, error) {
	decoded, version, err := schema.DecodeMetadata(r.Value)
	if err != nil {
		return "", err
	}
	return schema.JSON(decoded, version), nil
}

func decodeCoordinator(log schema.Log) decoder {
	return func(r record.Record) (string, error) {
		key, err := schema.DecodeKey(log, r.Key)
		if err != nil {
			return "", err
		}
		if r.Value == nil {
			return "key=" + schema.KeyJSON(key) + " value=null", nil
		}
		value, version, err := schema.DecodeValue(log, key.APIKey(), r.Value)
		if err != nil {
			return "", err
		}
		return "key=" + schema.KeyJSON(key) + " value=" + schema.ValueJSON(value, version) + describeMembers(value), nil
	}
}

// describeControl prints a control record: the type, and what its value says.
func describeControl(r record.Record) (string, error) {
	kind, err := record.ParseControlKey(r.Key)
	if err != nil {
		return describePlain(r), err
	}
	var value any
	switch kind {
	case record.ControlAbort, record.ControlCommit:
		var marker record.EndTxnMarker
		marker, err = record.ParseEndTxnMarker(r.Key, r.Value)
		value = struct{ CoordinatorEpoch int32 }{marker.CoordinatorEpoch}
	case record.ControlLeaderChange:
		value, err = record.ParseLeaderChange(r.Value)
	case record.ControlSnapshotHeader:
		value, err = record.ParseSnapshotHeader(r.Value)
	case record.ControlSnapshotFooter:
		value, err = record.ParseSnapshotFooter(r.Value)
	case record.ControlKRaftVersion:
		value, err = record.ParseKRaftVersion(r.Value)
	case record.ControlKRaftVoters:
		value, err = record.ParseVoters(r.Value)
	default:
		return fmt.Sprintf("control record of the unknown type, key %s value %s", hex.EncodeToString(r.Key), hex.EncodeToString(r.Value)), nil
	}
	if err != nil {
		return kind.String(), err
	}
	return fmt.Sprintf("%s %+v", kind, value), nil
}

// dumpSnapshot prints a snapshot of the metadata log, or the bootstrap.checkpoint that older versions wrote.
func (d *dumper) dumpSnapshot(stem string) error {
	switch offset, epoch, ok := parseSnapshotName(stem); {
	case ok:
		d.line("# a snapshot of the metadata up to offset %d, epoch %d", offset, epoch)
	case stem == "bootstrap":
		d.line("# the records with which a cluster begins")
	default:
		return errors.New("its name is that of no snapshot")
	}
	var first, last record.ControlType = -1, -1
	seen := 0
	end, err := d.dumpBatches(0, true, decodeMetadata, func(b record.Batch) {
		from, to := controlTypes(b, d.pool)
		if seen == 0 {
			first = from
		}
		last = to
		seen++
	})
	if err != nil || d.damages > 0 {
		return err
	}
	if first != record.ControlSnapshotHeader {
		d.damage(0, "the first record is no snapshot header")
	}
	if last != record.ControlSnapshotFooter {
		size, err := d.fsys.Stat(d.name)
		if err != nil {
			return err
		}
		d.damage(size.Size, "the last record, at offset %d, is no snapshot footer: the snapshot is not whole", end-1)
	}
	return nil
}

// parseSnapshotName reads <offset>-<epoch>, twenty and ten digits.
func parseSnapshotName(stem string) (offset protocol.Offset, epoch protocol.LeaderEpoch, ok bool) {
	a, b, found := strings.Cut(stem, "-")
	o, err1 := strconv.ParseUint(a, 10, 63)
	e, err2 := strconv.ParseUint(b, 10, 31)
	return protocol.Offset(o), protocol.LeaderEpoch(e), found && err1 == nil && err2 == nil && len(a) == 20 && len(b) == 10
}

// controlTypes gives the types of the first and the last record of a batch, -1 if it is no control batch.
func controlTypes(b record.Batch, pool *compress.Pool) (first, last record.ControlType) {
	first, last = -1, -1
	if !b.IsControl() {
		return first, last
	}
	for r, err := range record.Records(b, pool, defaultMaxDecompressed) {
		if err != nil {
			return first, last
		}
		kind, err := record.ParseControlKey(r.Key)
		if err != nil {
			kind = -1
		}
		if first < 0 {
			first = kind
		}
		last = kind
	}
	return first, last
}
