package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"ottla/protocol"
	"ottla/storage/checkpoint"
	"ottla/storage/logdir"
	"ottla/storage/vfs"
)

// directory is one log directory.
type directory struct {
	path       string
	meta       logdir.MetaProperties
	known      bool // meta can be used
	clean      bool
	inUse      bool
	points     map[string]map[protocol.TopicPartition]protocol.Offset // by file
	partitions []*partition
	metadata   string // path of the metadata partition, "" if it is elsewhere
}

func (d *directory) describe() Directory {
	described := Directory{Path: d.path, NodeID: protocol.NoNode, Clean: d.clean, InUse: d.inUse, Partitions: len(d.partitions)}
	if d.known {
		described.ClusterID, described.NodeID = d.meta.ClusterID, d.meta.NodeID
		if !d.meta.DirectoryID.IsZero() {
			described.DirectoryID = d.meta.DirectoryID.String()
		}
	}
	if d.metadata != "" {
		described.Partitions++
	}
	return described
}

// point gives the offset of a partition in one of the checkpoints.
func (d *directory) point(file string, tp protocol.TopicPartition) (protocol.Offset, bool) {
	offset, ok := d.points[file][tp]
	return offset, ok
}

// open lists a directory and checks the files that speak of all of it. What they say is read before any log: logs only
// grow, should a server have them in use.
func (c *checker) open(dir string) (*directory, error) {
	entries, err := c.fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	d := &directory{path: dir, points: map[string]map[protocol.TopicPartition]protocol.Offset{}}
	lock := path.Join(dir, logdir.LockFile)
	if d.inUse = c.options.InUse(lock); d.inUse {
		c.note(InUse, lock, -1, "", "a server has the directory in use; what it writes meanwhile may look unfinished")
	}
	for _, e := range entries {
		if e.Dir {
			c.openSub(d, e.Name)
			continue
		}
		c.checkTopFile(d, e)
	}
	switch {
	case !slices.ContainsFunc(entries, func(e vfs.Entry) bool { return e.Name == logdir.MetaPropertiesFile }):
		c.fault(MetaProperties, dir, -1, "", "it has no meta.properties, so it is not formatted, or not a log directory")
	case !d.clean && !d.inUse:
		c.note(NotClosed, dir, -1, "", "it was not closed in order: what lies beyond the recovery points may be unfinished")
	}
	return d, nil
}

func (c *checker) checkTopFile(d *directory, e vfs.Entry) {
	file := path.Join(d.path, e.Name)
	switch {
	case e.Name == logdir.MetaPropertiesFile:
		c.checkMeta(d, file)
	case e.Name == logdir.CleanShutdownFile:
		c.checkMarker(d, file)
	case isCheckpoint(e.Name):
		c.checkOffsets(d, file, e.Name)
	case e.Name == bootstrapFile:
		c.checkBootstrap(d, file)
	case e.Name == logdir.BootIDFile, e.Name == logdir.LockFile:
		c.report.Checked.Files++
	case strings.HasSuffix(e.Name, vfs.TempSuffix):
		c.note(LeftOver, file, -1, "", "a file that was being replaced when its writer stopped")
	default:
		c.note(ForeignFile, file, -1, "", "no server writes a file of this name here")
	}
}

func isCheckpoint(name string) bool {
	switch name {
	case logdir.RecoveryPointFile, logdir.LogStartFile, logdir.HighWatermarkFile, logdir.CleanerFile:
		return true
	}
	return false
}

func (c *checker) checkMeta(d *directory, file string) {
	data := c.readSmall(d, file)
	if data == nil {
		return
	}
	var err error
	if d.meta, err = logdir.ParseMetaProperties(data); err != nil {
		c.fault(MetaProperties, file, -1, "", "%v", err)
		return
	}
	d.known = true
}

// checkMarker reads the clean-shutdown marker. Before 3.7 Apache Kafka wrote it empty. What cannot be read is no marker,
// for a start too.
func (c *checker) checkMarker(d *directory, file string) {
	data := c.readSmall(d, file)
	if data == nil {
		return
	}
	if len(data) == 0 {
		d.clean = true
		return
	}
	var marker struct {
		Version     *int   `json:"version"`
		BrokerEpoch *int64 `json:"brokerEpoch"`
	}
	err := json.Unmarshal(data, &marker)
	switch {
	case err != nil:
		c.fault(CleanShutdown, file, -1, "", "it is damaged: %v", err)
	case marker.Version == nil || *marker.Version != 0 || marker.BrokerEpoch == nil || *marker.BrokerEpoch < -1:
		c.fault(CleanShutdown, file, -1, "", "it is damaged: its version is not 0, or it has no broker epoch")
	default:
		d.clean = true
	}
}

// checkOffsets reads an offset checkpoint. One without a byte is empty, as Apache Kafka creates it.
func (c *checker) checkOffsets(d *directory, file, name string) {
	data := c.readSmall(d, file)
	if len(data) == 0 {
		return
	}
	offsets, err := checkpoint.ParseOffsets(data)
	switch lines := bytes.Count(data, []byte("\n")) - 2; {
	case err != nil:
		c.fault(Checkpoint, file, -1, "", "%v", err)
		return
	case !bytes.HasSuffix(data, []byte("\n")):
		c.fault(Checkpoint, file, -1, "", "its last line is cut")
		return
	case len(offsets) < lines:
		c.fault(Checkpoint, file, -1, "", "it has %d lines for %d partitions: one is in it twice", lines, len(offsets))
	}
	for _, tp := range sortedPartitions(offsets) {
		if offset := offsets[tp]; offset < 0 {
			c.fault(Checkpoint, file, -1, tp.String(), "it gives %s the offset %d", tp, offset)
			delete(offsets, tp)
		}
	}
	d.points[name] = offsets
}

func sortedPartitions[V any](m map[protocol.TopicPartition]V) []protocol.TopicPartition {
	list := make([]protocol.TopicPartition, 0, len(m))
	for tp := range m {
		list = append(list, tp)
	}
	slices.SortFunc(list, protocol.TopicPartition.Compare)
	return list
}

// openSub sorts a directory in by its name.
func (c *checker) openSub(d *directory, name string) {
	full := path.Join(d.path, name)
	kind, tp := logdir.Classify(name)
	switch {
	case name == protocol.ClusterMetadataTopic+"-0":
		d.metadata = full
	case kind == logdir.KindDeleted:
		c.note(LeftOver, full, -1, "", "a partition that was deleted; its files go at the next start")
	case kind == logdir.KindAside:
		c.note(Stray, full, -1, "", "a partition that was put aside because the metadata did not know it")
	case kind == logdir.KindUnknown:
		c.fault(Name, full, -1, "", "the name is not that of a partition, and Apache Kafka would not start")
	case kind == logdir.KindFuture:
		c.note(FutureLog, full, -1, tp.String(), "%s moves to this directory", tp)
		d.partitions = append(d.partitions, &partition{path: full, tp: tp, future: true})
	case kind == logdir.KindPartition:
		if other := c.home[tp]; other != nil {
			c.fault(PartitionTwice, full, -1, tp.String(), "%s lies in %s too", tp, other.path)
		}
		c.home[tp] = d
		d.partitions = append(d.partitions, &partition{path: full, tp: tp})
	}
}

// compareDirectories holds the directories against each other, and their checkpoints against what lies in them.
func (c *checker) compareDirectories() {
	var first *directory
	ids := map[protocol.DirectoryID]*directory{}
	for _, d := range c.dirs {
		c.checkEntries(d)
		if !d.known {
			continue
		}
		file := path.Join(d.path, logdir.MetaPropertiesFile)
		if first == nil {
			first = d
		}
		if d.meta.ClusterID != first.meta.ClusterID {
			c.fault(ClusterID, file, -1, "", "the cluster is %s, but that of %s is %s", d.meta.ClusterID, first.path, first.meta.ClusterID)
		}
		if d.meta.NodeID != first.meta.NodeID {
			c.fault(NodeID, file, -1, "", "the node is %d, but that of %s is %d", d.meta.NodeID, first.path, first.meta.NodeID)
		}
		if d.meta.DirectoryID.IsZero() {
			continue
		}
		if other := ids[d.meta.DirectoryID]; other != nil {
			c.fault(DirectoryID, file, -1, "", "%s has the same id, %s", other.path, d.meta.DirectoryID)
		}
		ids[d.meta.DirectoryID] = d
	}
}

func (c *checker) checkEntries(d *directory) {
	here := map[protocol.TopicPartition]bool{}
	for _, p := range d.partitions {
		here[p.tp] = true
	}
	for _, name := range []string{logdir.RecoveryPointFile, logdir.LogStartFile, logdir.HighWatermarkFile, logdir.CleanerFile} {
		for _, tp := range sortedPartitions(d.points[name]) {
			if !here[tp] {
				c.note(AbsentEntry, path.Join(d.path, name), -1, tp.String(), "it names %s, which is not in the directory", tp)
			}
		}
	}
}

// checkPlacement looks for what the metadata assigns to the directories.
func (c *checker) checkPlacement() {
	if c.image == nil {
		return
	}
	for _, d := range c.dirs {
		if !d.known || d.meta.DirectoryID.IsZero() {
			continue
		}
		for topic := range c.image.Topics() {
			for n, assigned := range topic.Partitions() {
				tp := protocol.TopicPartition{Topic: topic.Name, Partition: n}
				if assigned.Directory(d.meta.NodeID) == d.meta.DirectoryID && c.home[tp] == nil {
					c.tell(d.clean, PartitionMissing, d.path, -1, tp.String(), "the metadata assigns %s to it, and it is not there", tp)
				}
			}
		}
	}
}

// missing tells that a file is not there; other errors are for who opens it.
func (c *checker) missing(file string) bool {
	_, err := c.fsys.Stat(file)
	return errors.Is(err, fs.ErrNotExist)
}
