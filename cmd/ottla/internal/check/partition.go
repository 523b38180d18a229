package check

import (
	"errors"
	"math"
	"path"
	"slices"
	"sort"
	"strings"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/checkpoint"
	"ottla/storage/logdir"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

const (
	snapshotSuffix = ".snapshot"
	epochFile      = "leader-epoch-checkpoint"
	topicFile      = "partition.metadata"
	// never is an offset that no log reaches.
	never protocol.Offset = math.MaxInt64
)

// partition is a directory with the name of one.
type partition struct {
	path   string
	tp     protocol.TopicPartition
	future bool
}

// segmentFiles are the files of a segment and their sizes; -1 is missing.
type segmentFiles struct {
	base                            protocol.Offset
	log, index, timeIndex, txnIndex int64
}

// logCheck is the check of one partition's log.
type logCheck struct {
	*checker
	d        *directory
	dir      string
	name     string          // of the partition, for findings
	recovery protocol.Offset // below it everything was made durable; never after a clean stop
	start    protocol.Offset // of the log, as the checkpoint tells
	segments []segmentFiles
	strict   bool // offsets leave no gaps: the metadata log
	fetched  bool // what a crash left of it a start takes off, and fetches it again: the metadata log of who does not vote

	// consume is handed the records of accepted batches, for what is more than bytes. The batch is the callee's to keep.
	consume func(b record.Batch, records []record.Record)

	epochs    []checkpoint.EpochStart
	epochsOf  string // the file; "" if there is nothing to compare with
	late      bool   // it was noted that they begin behind the log's start
	producers producerCheck

	at        place           // of the batch whose records are being consumed
	next      protocol.Offset // the least base offset that may come
	epoch     protocol.LeaderEpoch
	lost      bool // offsets of the batch before are not believed
	broken    bool // batches could not be read, so nothing is known of the log's end
	cut       bool // the log ends here for a start, too
	sparse    bool // offsets are missing, as after compaction
	compacted bool // it is known to be
	swapping  bool // compacted segments wait to be put in place
	leftOver  []string
}

// place is where a batch lies.
type place struct {
	file     string
	position int64
}

// sure tells that what lies at an offset was made durable, so that it must be in order.
func (l *logCheck) sure(offset protocol.Offset) bool { return offset < l.recovery }

func (c *checker) checkPartition(d *directory, p *partition) {
	c.report.Checked.Partitions++
	l := &logCheck{
		checker: c, d: d, dir: p.path, name: p.tp.String(), recovery: never, epoch: protocol.NoLeaderEpoch,
	}
	if !d.clean {
		l.recovery, _ = d.point(logdir.RecoveryPointFile, p.tp)
	}
	l.start, _ = d.point(logdir.LogStartFile, p.tp)
	_, l.compacted = d.point(logdir.CleanerFile, p.tp)
	if c.image != nil {
		policy := c.image.Config(metadata.TopicConfig, p.tp.Topic)["cleanup.policy"]
		l.compacted = l.compacted || strings.Contains(policy, "compact")
	}
	if !l.list() {
		return
	}
	l.checkTopicID(p)
	l.consume = c.coordinatorOf(l, p.tp)
	l.walk()
	if !l.broken {
		l.checkEnd(p.tp)
	}
}

// list sorts the files of the directory.
func (l *logCheck) list() bool {
	entries, err := l.fsys.ReadDir(l.dir)
	if err != nil {
		l.cannotRead(l.d, l.dir, err)
		return false
	}
	l.progress(l.dir)
	found := map[protocol.Offset]*segmentFiles{}
	for _, e := range entries {
		if base, suffix, ok := parseName(e.Name); ok && !e.Dir && suffix == segment.LogSuffix {
			found[base] = &segmentFiles{base, e.Size, -1, -1, -1}
		}
	}
	for _, e := range entries {
		l.assign(e, found)
	}
	if n := len(l.leftOver); n > 0 {
		l.note(LeftOver, l.dir, -1, l.name, "%s that a start removes or puts in place, as %s", count(int64(n), "file"), l.leftOver[0])
	}
	for _, s := range found {
		l.segments = append(l.segments, *s)
	}
	slices.SortFunc(l.segments, func(a, b segmentFiles) int { return int(min(max(a.base-b.base, -1), 1)) })
	slices.Sort(l.producers.files)
	return true
}

// parseName takes the names of files that are called by an offset, as servers write them: twenty digits.
func parseName(name string) (protocol.Offset, string, bool) {
	base, suffix, ok := segment.ParseName(name)
	return base, suffix, ok && len(name)-len(suffix) == 20
}

func (l *logCheck) assign(e vfs.Entry, found map[protocol.Offset]*segmentFiles) {
	file := path.Join(l.dir, e.Name)
	base, suffix, ok := parseName(e.Name)
	s := found[base]
	switch {
	case e.Name == epochFile, e.Name == topicFile, e.Name == quorumStateFile && l.strict:
	case l.strict && isMetadataSnapshot(e.Name):
	case isLeftOver(e.Name):
		l.swapping = l.swapping || strings.HasSuffix(e.Name, segment.LogSuffix+segment.SwapSuffix)
		l.leftOver = append(l.leftOver, e.Name)
	case !ok || e.Dir:
		l.note(ForeignFile, file, -1, l.name, "no server writes a file of this name here")
	case suffix == snapshotSuffix:
		l.producers.files = append(l.producers.files, base)
	case suffix == segment.LogSuffix:
	case suffix == segment.IndexSuffix && s != nil:
		s.index = e.Size
	case suffix == segment.TimeIndexSuffix && s != nil:
		s.timeIndex = e.Size
	case suffix == segment.TxnIndexSuffix && s != nil:
		s.txnIndex = e.Size
	case suffix == segment.IndexSuffix, suffix == segment.TimeIndexSuffix, suffix == segment.TxnIndexSuffix:
		l.note(LeftOver, file, -1, l.name, "an index without its log, which a start removes")
	default:
		l.note(ForeignFile, file, -1, l.name, "no server writes a file of this name here")
	}
}

func isLeftOver(name string) bool {
	for _, suffix := range []string{segment.DeletedSuffix, segment.CleanedSuffix, segment.SwapSuffix, vfs.TempSuffix, ".part"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// checkTopicID reads partition.metadata. Apache Kafka writes it behind the creation of the log, so a kill may come
// before.
func (l *logCheck) checkTopicID(p *partition) {
	file := path.Join(l.dir, topicFile)
	var topic *metadata.Topic
	if l.image != nil {
		topic = l.image.Topic(p.tp.Topic)
		if topic == nil || topic.Partition(p.tp.Partition) == nil {
			l.note(Stray, l.dir, -1, l.name, "the metadata has no %s", p.tp)
			topic = nil
		} else if id := topic.Partition(p.tp.Partition).Directory(l.d.meta.NodeID); l.d.known && !p.future && !id.IsZero() && id != l.d.meta.DirectoryID && assignable(id) {
			l.note(Stray, l.dir, -1, l.name, "the metadata has %s in the directory %s", p.tp, id)
		}
	}
	if l.missing(file) {
		l.note(PartitionMetadata, file, -1, l.name, "it is missing")
		return
	}
	data := l.readSmall(l.d, file)
	if data == nil {
		return
	}
	id, err := checkpoint.ParseTopicID(data)
	switch {
	case err != nil:
		l.fault(PartitionMetadata, file, -1, l.name, "%v", err)
	case topic != nil && topic.ID != id:
		l.tell(l.d.clean, TopicID, file, -1, l.name, "it says that the topic is %s, and the metadata that it is %s", id, topic.ID)
	}
}

// assignable tells ids of directories from those that name none: unassigned, lost, migrating (DirectoryId.java).
func assignable(id protocol.DirectoryID) bool {
	return slices.ContainsFunc(id[:len(id)-1], func(b byte) bool { return b != 0 }) || id[len(id)-1] >= 100
}

// walk goes through the batches of all segments, and through what is beside them.
func (l *logCheck) walk() {
	l.readEpochs()
	if len(l.segments) == 0 {
		l.note(LeftOver, l.dir, -1, l.name, "it has no segment; a start makes one")
		l.next = l.start
	} else {
		l.next = l.segments[0].base
		l.producers.begin(l.next)
	}
	for i := range l.segments {
		if !l.enter(i) {
			break
		}
		l.checkSegment(i)
	}
	if l.broken || l.swapping {
		l.broken = true
		return
	}
	l.passSnapshots(l.next)
	for _, at := range l.producers.files {
		l.readProducers(at)
		l.tell(l.d.clean, ProducerSnapshot, l.snapshotFile(at), -1, l.name, "it is of offset %d, and the log ends at %d", at, l.next)
	}
	if n := len(l.epochs); n > 0 && l.epochs[n-1].Start > l.next {
		last := l.epochs[n-1]
		l.tell(l.d.clean, EpochStart, l.epochsOf, -1, l.name, "it says that epoch %d begins at %d, and the log ends at %d", last.Epoch, last.Start, l.next)
	}
}

// enter holds the base of a segment against the end of the one before it; false ends the walk.
func (l *logCheck) enter(i int) bool {
	s := l.segments[i]
	file := l.segmentFile(s.base, segment.LogSuffix)
	if l.cut {
		l.note(TornTail, file, -1, l.name, "it lies behind what a start cuts off, and goes with it")
		return false
	}
	l.report.Checked.Segments++
	switch {
	case i == 0 || l.lost:
	case l.fetched && s.base != l.next:
		l.note(TornTail, file, 0, l.name, "it begins at offset %d, but the segment before it ends at %d; a start removes it", s.base, l.next)
		l.cut = true
		return false
	case s.base < l.next:
		l.tell(l.sure(s.base) && !l.swapping, SegmentOverlap, file, 0, l.name, "it begins at offset %d, and the segment before it ends at %d", s.base, l.next)
		l.lost = true
	case s.base > l.next && (l.sparse || l.compacted || l.swapping):
		l.note(OffsetGap, file, 0, l.name, "it begins at offset %d, and the segment before it ends at %d", s.base, l.next)
		l.sparse = true
	case s.base > l.next:
		l.tell(l.sure(l.next), SegmentGap, file, 0, l.name, "it begins at offset %d, but the segment before it ends at %d and nothing was compacted", s.base, l.next)
		l.producers.forget()
	}
	l.next = max(l.next, s.base)
	if l.lost {
		l.next = s.base
	}
	return true
}

func (l *logCheck) segmentFile(base protocol.Offset, suffix string) string {
	return path.Join(l.dir, segment.FileName(base, suffix))
}

// checkEnd holds the offsets of the directory's checkpoints against the end of the log.
func (l *logCheck) checkEnd(tp protocol.TopicPartition) {
	for _, one := range []struct {
		file  string
		name  Fault
		what  string
		fault bool
	}{
		// A recovery point is written after what it speaks of. The others may be ahead of what a crash left.
		{logdir.RecoveryPointFile, RecoveryPoint, "everything up to offset %d was durable", !l.d.inUse},
		{logdir.LogStartFile, LogStart, "the log begins at offset %d", l.d.clean},
		{logdir.HighWatermarkFile, HighWatermark, "the high watermark is %d", l.d.clean},
		{logdir.CleanerFile, CleanerOffset, "it was compacted up to offset %d", l.d.clean},
	} {
		if offset, ok := l.d.point(one.file, tp); ok && offset > l.next {
			l.tell(one.fault, one.name, path.Join(l.d.path, one.file), -1, l.name, one.what+", but the log of %s ends at %d", offset, tp, l.next)
		}
	}
}

// readEpochs reads leader-epoch-checkpoint. It is written before the first batch of an epoch.
func (l *logCheck) readEpochs() {
	file := path.Join(l.dir, epochFile)
	if l.missing(file) {
		if slices.ContainsFunc(l.segments, func(s segmentFiles) bool { return s.log > 0 }) {
			l.tell(l.d.clean, EpochCheckpoint, file, -1, l.name, "it is missing")
		}
		return
	}
	data := l.readSmall(l.d, file)
	if len(data) == 0 {
		return
	}
	epochs, err := checkpoint.ParseEpochs(data)
	if err == nil && data[len(data)-1] != '\n' {
		err = errors.New("its last line is cut")
	}
	if err != nil {
		l.fault(EpochCheckpoint, file, -1, l.name, "%v", err)
		return
	}
	l.epochs, l.epochsOf = epochs, file
}

// checkEpoch holds the leader epoch of a batch against the one before it and against leader-epoch-checkpoint.
func (l *logCheck) checkEpoch(file string, f found) {
	epoch := f.batch.PartitionLeaderEpoch()
	offset := max(f.batch.BaseOffset(), l.start)
	if epoch < l.epoch {
		l.tell(l.sure(offset), BatchEpoch, file, f.position, l.name, "the batch at offset %d has leader epoch %d, after one of epoch %d", f.batch.BaseOffset(), epoch, l.epoch)
		return
	}
	if l.epochsOf == "" || f.batch.LastOffset() < l.start {
		l.epoch = epoch
		return
	}
	if len(l.epochs) > 0 && offset < l.epochs[0].Start {
		// Records were deleted, and the server was killed before it noted the log's new start.
		if !l.late {
			l.note(EpochsLate, l.epochsOf, -1, l.name, "it begins at offset %d, and the log at %d", l.epochs[0].Start, offset)
		}
		l.epoch, l.late = epoch, true
		return
	}
	says := l.epochAt(offset)
	if says == epoch {
		offset = f.batch.LastOffset()
		says = l.epochAt(offset)
	}
	if says == epoch {
		l.epoch = epoch
		return
	}
	l.tell(l.sure(offset), EpochStart, l.epochsOf, -1, l.name, "it says that offset %d is of epoch %d, and the batch at byte %d of %s that it is of epoch %d",
		offset, says, f.position, path.Base(file), epoch)
	l.epochsOf = "" // one of the two is wrong, and what follows from it is not told again
}

// epochAt is the leader epoch of an offset, as leader-epoch-checkpoint tells.
func (l *logCheck) epochAt(offset protocol.Offset) protocol.LeaderEpoch {
	i := sort.Search(len(l.epochs), func(i int) bool { return l.epochs[i].Start > offset })
	if i == 0 {
		return protocol.NoLeaderEpoch
	}
	return l.epochs[i-1].Epoch
}
