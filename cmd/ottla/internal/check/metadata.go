package check

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"ottla/cmd/ottla/internal/batches"
	"ottla/controller/metadata"
	"ottla/controller/quorum"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/schema"
	"ottla/storage/checkpoint"
)

const (
	quorumStateFile  = "quorum-state"
	metadataSuffix   = ".checkpoint"
	bootstrapFile    = "bootstrap" + metadataSuffix
	snapshotNameSize = 20 + 1 + 10
)

// metadataTopicID is that of __cluster_metadata (Uuid.METADATA_TOPIC_ID).
var metadataTopicID = protocol.TopicID{15: 1}

// snapshotID names a snapshot of the metadata: all before end, the last of it of an epoch (KIP-630).
type snapshotID struct {
	end   protocol.Offset
	epoch protocol.LeaderEpoch
	file  string
}

func isMetadataSnapshot(name string) bool {
	_, ok := parseSnapshotName(name)
	return ok
}

func parseSnapshotName(name string) (id snapshotID, ok bool) {
	stem, found := strings.CutSuffix(name, metadataSuffix)
	if !found || len(stem) != snapshotNameSize || stem[20] != '-' {
		return id, false
	}
	end, err1 := strconv.ParseUint(stem[:20], 10, 63)
	epoch, err2 := strconv.ParseUint(stem[21:], 10, 31)
	return snapshotID{protocol.Offset(end), protocol.LeaderEpoch(epoch), name}, err1 == nil && err2 == nil
}

// metadataCheck replays the metadata log.
type metadataCheck struct {
	*logCheck
	snapshots []snapshotID // that the replay has not passed yet, by end
	bootstrap string       // the file bootstrap.checkpoint, "" if there is none
	loader    *metadata.Loader
	known     bool                 // the loader holds what the log says so far
	led       protocol.LeaderEpoch // of quorum-state; -1: not known
	epoch     protocol.LeaderEpoch
}

// checkMetadata checks the metadata partition of a directory, and keeps the Image that its replay gives.
func (c *checker) checkMetadata(d *directory) {
	c.report.Checked.Partitions++
	m := &metadataCheck{led: protocol.NoLeaderEpoch, epoch: protocol.NoLeaderEpoch, loader: metadata.NewLoader()}
	m.logCheck = &logCheck{
		checker: c, d: d, dir: d.metadata, name: protocol.ClusterMetadataTopic + "-0", strict: true,
		recovery: never, epoch: protocol.NoLeaderEpoch, consume: m.consume,
	}
	m.checkQuorumState()
	if !m.list() {
		return
	}
	m.checkTopicID()
	m.listSnapshots()
	if !d.clean {
		m.recovery = m.floor()
	}
	if m.fetched {
		m.recovery = 0
	}
	if len(m.snapshots) > 0 {
		m.logCheck.start = m.snapshots[0].end // or earlier: no file tells
	}
	if file := path.Join(d.path, bootstrapFile); !c.missing(file) {
		m.bootstrap = file
	}
	m.begin()
	m.walk()
	m.finish()
}

func (m *metadataCheck) checkQuorumState() {
	file := path.Join(m.dir, quorumStateFile)
	if m.missing(file) {
		return // nothing was decided yet
	}
	data := m.readSmall(m.d, file)
	if data == nil {
		return
	}
	election, err := quorum.ParseElection(data)
	if err != nil {
		m.fault(QuorumState, file, -1, m.name, "%v", err)
		return
	}
	m.led = election.Epoch
	m.fetched = !m.d.clean && m.d.known && election.Observes(m.d.meta.NodeID)
}

func (m *metadataCheck) checkTopicID() {
	file := path.Join(m.dir, topicFile)
	if m.missing(file) {
		return
	}
	if data := m.readSmall(m.d, file); data != nil {
		if id, err := checkpoint.ParseTopicID(data); err != nil {
			m.fault(PartitionMetadata, file, -1, m.name, "%v", err)
		} else if id != metadataTopicID {
			m.fault(TopicID, file, -1, m.name, "it says that the topic is %s, and that of the metadata is always %s", id, metadataTopicID)
		}
	}
}

func (m *metadataCheck) listSnapshots() {
	entries, err := m.fsys.ReadDir(m.dir)
	if err != nil {
		return // reported by list
	}
	for _, e := range entries {
		if id, ok := parseSnapshotName(e.Name); ok {
			m.snapshots = append(m.snapshots, id) // sorted by name is sorted by end
		}
	}
}

// floor is how far the log was durable for sure: snapshots of either kind are written behind it.
func (m *metadataCheck) floor() protocol.Offset {
	var floor protocol.Offset
	if n := len(m.snapshots); n > 0 {
		floor = m.snapshots[n-1].end
	}
	if n := len(m.producers.files); n > 0 {
		floor = max(floor, m.producers.files[n-1])
	}
	return floor
}

// begin makes the loader hold what was before the log: nothing, or what a format left.
func (m *metadataCheck) begin() {
	base := protocol.Offset(0)
	if len(m.segments) > 0 {
		base = m.segments[0].base
	}
	if base == 0 {
		m.known = true
		if len(m.snapshots) > 0 && m.snapshots[0].end == 0 {
			first := m.snapshots[0]
			m.snapshots = m.snapshots[1:]
			values, ok := m.readSnapshot(first)
			if m.known = ok; ok && len(values) > 0 {
				m.restart(first, values)
				return
			}
		}
		if m.bootstrap != "" {
			// Whether it can be read is checked with the files of the directory.
			if values, ok := m.read(m.bootstrap, nil, func(int64, string, ...any) {}); ok {
				m.restart(snapshotID{file: bootstrapFile}, values)
			}
		}
		return
	}
	if n := len(m.snapshots); n == 0 || m.snapshots[n-1].end < base {
		m.fault(MetadataSnapshot, m.dir, -1, m.name, "the log begins at offset %d, and no snapshot covers what is before it", base)
	}
}

// restart makes the loader hold a snapshot.
func (m *metadataCheck) restart(id snapshotID, values [][]byte) bool {
	image, err := load(id, values)
	if err != nil {
		m.fault(MetadataSnapshot, path.Join(m.dir, id.file), -1, m.name, "%v", err)
		m.known = false
		return false
	}
	m.loader = image
	m.known = true
	return true
}

// normal makes a registration what a snapshot of Apache Kafka makes of it: the features are in no order, and where nothing
// is said of cordoned directories there are none.
func normal(value []byte) []byte {
	decoded, version, err := schema.DecodeMetadata(value)
	broker, ok := decoded.(*schema.RegisterBrokerRecord)
	if err != nil || !ok {
		return value
	}
	slices.SortFunc(broker.Features, func(a, b schema.BrokerFeature) int { return strings.Compare(a.Name, b.Name) })
	if version >= cordonedSince && broker.CordonedLogDirs == nil {
		broker.CordonedLogDirs = []protocol.UUID{}
	}
	return schema.EncodeMetadata(broker, version)
}

// cordonedSince is the version of RegisterBrokerRecord that has cordonedLogDirs.
const cordonedSince = 4

func load(id snapshotID, values [][]byte) (*metadata.Loader, error) {
	loader := metadata.NewLoader()
	each := func(yield func([]byte, error) bool) {
		for _, value := range values {
			if !yield(value, nil) {
				return
			}
		}
	}
	err := replay(func() error {
		_, _, err := loader.LoadSnapshot(metadata.Provenance{Offset: id.end - 1, Epoch: id.epoch, TimestampMs: record.NoTimestamp}, each)
		return err
	})
	return loader, err
}

// consume applies a batch of the log.
func (m *metadataCheck) consume(b record.Batch, records []record.Record) {
	if m.broken {
		m.known = false // a batch before was not applied
	}
	m.pass(b.BaseOffset())
	m.checkLeader(b, records)
	if !m.known {
		return
	}
	batch := metadata.Batch{
		BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset(), Epoch: b.PartitionLeaderEpoch(), TimestampMs: b.MaxTimestamp(),
	}
	if !b.IsControl() {
		for _, r := range records {
			batch.Values = append(batch.Values, normal(r.Value))
		}
	}
	err := replay(func() error {
		_, _, err := m.loader.Apply(batch)
		return err
	})
	if err != nil {
		m.fault(MetadataRecord, m.at.file, m.at.position, m.name, "the batch at offset %d: %v", b.BaseOffset(), err)
		m.known = false
	}
}

// checkLeader holds a batch against the rule that a leader's first one says so, and against quorum-state, which is
// written before it.
func (m *metadataCheck) checkLeader(b record.Batch, records []record.Record) {
	epoch := b.PartitionLeaderEpoch()
	begins := false
	if b.IsControl() && len(records) > 0 {
		kind, err := record.ParseControlKey(records[0].Key)
		begins = err == nil && kind == record.ControlLeaderChange
	}
	switch {
	case m.epoch != protocol.NoLeaderEpoch && epoch > m.epoch && !begins:
		m.tell(!m.fetched, MetadataRecord, m.at.file, m.at.position, m.name, "leader epoch %d begins at offset %d without a leader change", epoch, b.BaseOffset())
	case m.led >= 0 && epoch > m.led:
		m.fault(QuorumState, path.Join(m.dir, quorumStateFile), -1, m.name, "the last election is that of epoch %d, and the batch at offset %d is of epoch %d", m.led, b.BaseOffset(), epoch)
		m.led = epoch
	}
	m.epoch = epoch
}

// pass compares the snapshots that end at or before an offset with the replay, or begins with one.
func (m *metadataCheck) pass(upTo protocol.Offset) {
	for len(m.snapshots) > 0 && m.snapshots[0].end <= upTo {
		id := m.snapshots[0]
		m.snapshots = m.snapshots[1:]
		file := path.Join(m.dir, id.file)
		values, ok := m.readSnapshot(id)
		if !ok {
			continue
		}
		if !m.known {
			m.restart(id, values)
			continue
		}
		other, err := load(id, values)
		switch {
		case err != nil:
			m.fault(MetadataSnapshot, file, -1, m.name, "%v", err)
		case m.loader.InTransaction():
			m.fault(MetadataState, file, -1, m.name, "its offset lies within a transaction of the log")
		case !other.Image().Equal(m.loader.Image()):
			m.fault(MetadataState, file, -1, m.name, "it is not what a replay of the log gives: %s", firstDifference(other.Image(), m.loader.Image()))
		}
	}
}

// firstDifference says in which kinds of things two Images differ.
func firstDifference(snapshot, log *metadata.Image) string {
	changes := metadata.Diff(snapshot, log)
	var kinds []string
	add := func(differs bool, format string, args ...any) {
		if differs {
			kinds = append(kinds, fmt.Sprintf(format, args...))
		}
	}
	for i, topic := range changes.Topics {
		add(i == 0, "topic %s", topic.New.Name)
	}
	for i, topic := range changes.DeletedTopics {
		add(i == 0, "topic %s", topic.Name)
	}
	add(len(changes.Brokers) > 0, "broker %v", changes.Brokers)
	add(len(changes.Controllers) > 0, "controller %v", changes.Controllers)
	for i, resource := range changes.Configs {
		add(i == 0, "the configuration of %q", resource.Name)
	}
	add(len(changes.Features) > 0, "feature %v", changes.Features)
	add(changes.ProducerIDs, "producer ids")
	add(changes.ClientQuotas, "quotas")
	add(changes.ACLs, "access control")
	add(changes.Scram, "credentials")
	add(changes.Tokens, "delegation tokens")
	return strings.Join(kinds, ", ")
}

// finish passes what is left, and gives the Image to the other checks.
func (m *metadataCheck) finish() {
	end := m.next
	if len(m.segments) == 0 {
		end = never // snapshots alone are whole metadata too
	}
	m.pass(end)
	for _, id := range m.snapshots {
		if _, ok := m.readSnapshot(id); ok && !m.broken {
			m.tell(m.d.clean, MetadataState, path.Join(m.dir, id.file), -1, m.name, "it is of offset %d, and the log ends at %d", id.end, m.next)
		}
	}
	if m.known && m.loader.InTransaction() {
		m.note(OpenAtEnd, m.dir, -1, m.name, "the log ends within a transaction, which the next leader aborts")
	}
	if m.known && !m.broken {
		m.image = m.loader.Image()
	}
}

// readSnapshot reads the values of a snapshot.
func (m *metadataCheck) readSnapshot(id snapshotID) ([][]byte, bool) {
	m.report.Checked.Files++
	file := path.Join(m.dir, id.file)
	return m.read(file, &id, func(position int64, format string, args ...any) {
		m.fault(MetadataSnapshot, file, position, m.name, format, args...)
	})
}

// checkBootstrap reads bootstrap.checkpoint, a bare list of batches.
func (c *checker) checkBootstrap(d *directory, file string) {
	c.report.Checked.Files++
	values, ok := c.read(file, nil, func(position int64, format string, args ...any) {
		c.fault(MetadataSnapshot, file, position, "", format, args...)
	})
	if !ok {
		return
	}
	if _, err := load(snapshotID{}, values); err != nil {
		c.fault(MetadataSnapshot, file, -1, "", "%v", err)
	}
}

// read reads a snapshot: batches from offset 0 on, the first record a header and the last a footer; or, without an id, a
// bootstrap.checkpoint, which may be a bare list of batches.
func (c *checker) read(file string, id *snapshotID, fault func(position int64, format string, args ...any)) (values [][]byte, ok bool) {
	reader, err := batches.Open(c.fsys, file)
	if err != nil {
		fault(-1, "%v", err)
		return nil, false
	}
	defer reader.Close()
	s := snapshotRead{checker: c, id: id, first: -1, last: -1}
	for {
		f, err := next(reader)
		if errors.Is(err, io.EOF) {
			break
		}
		position := reader.Position()
		if err == nil {
			position, err = f.position, s.batch(f)
		}
		if err != nil {
			fault(position, "%v", err)
			return nil, false
		}
	}
	switch {
	case id != nil && s.first != record.ControlSnapshotHeader:
		fault(0, "the first record is no snapshot header")
		return nil, false
	case id != nil && s.last != record.ControlSnapshotFooter:
		fault(reader.Size(), "the footer is missing, so it is not whole")
		return nil, false
	}
	return s.values, true
}

// snapshotRead gathers the content of a snapshot.
type snapshotRead struct {
	*checker
	id          *snapshotID
	next        protocol.Offset
	first, last record.ControlType
	batches     int
	values      [][]byte
}

func (s *snapshotRead) batch(f found) error {
	b := slices.Clone(f.batch)
	switch {
	case f.crc != b.CRC():
		return fmt.Errorf("the checksum of the batch at offset %d is %08x, not %08x", b.BaseOffset(), f.crc, b.CRC())
	case b.BaseOffset() != s.next || b.LastOffsetDelta() < 0:
		return fmt.Errorf("a batch begins at offset %d, but %d is next", b.BaseOffset(), s.next)
	case s.id != nil && b.PartitionLeaderEpoch() != s.id.epoch:
		return fmt.Errorf("the batch at offset %d has leader epoch %d, but the snapshot is of epoch %d", b.BaseOffset(), b.PartitionLeaderEpoch(), s.id.epoch)
	case !f.whole:
		return fmt.Errorf("a batch of %d bytes is larger than any of a snapshot", f.size)
	case s.last == record.ControlSnapshotFooter:
		return errors.New("a batch follows the footer")
	}
	s.last = -1
	for r, err := range record.Records(b, s.pool, s.options.MaxDecompressed) {
		if err != nil {
			return err
		}
		s.report.Checked.Records++
		if !b.IsControl() {
			s.values = append(s.values, normal(r.Value))
			continue
		}
		kind, err := record.ParseControlKey(r.Key)
		if err == nil {
			err = parseQuorumControl(kind, r.Value)
		}
		if err != nil {
			return err
		}
		if s.batches == 0 && s.first < 0 {
			s.first = kind
		}
		s.last = kind
	}
	s.report.Checked.Batches++
	s.batches++
	s.next = b.NextOffset()
	return nil
}
