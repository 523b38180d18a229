package store

import (
	"time"

	"ottla/protocol"
	"ottla/storage/log"
)

// Store is all logs of a node. All methods may be called at any time from anywhere.
type Store struct{}

// Directory is one log directory.
type Directory struct {
	ID      protocol.DirectoryID // zero if it could not be read
	Path    string
	Offline error // why it is offline; nil if it works
}

// Open is Prepare, Begin and Load in one.
func Open(now time.Time, o Options) (*Store, Report, error) { panic("being written") }

// Report says what a start found and did.
type Report struct {
	Directories []DirectoryReport
}

// DirectoryReport is the part of one directory.
type DirectoryReport struct {
	Directory
	Trust       log.Trust
	Logs        int
	Repaired    []PartitionReport // logs that needed repair
	Damaged     []PartitionReport // partitions that are offline
	Removed     []string          // directories that ended in -delete
	Strays      []string          // -stray and -future directories, which are left alone
	Unknown     []string          // other directories that are no partitions, left alone
	Checkpoints []string          // checkpoint files that were damaged and are taken as empty
}

// PartitionReport is one partition that a start has something to say of.
type PartitionReport struct {
	Partition protocol.TopicPartition
	Recovery  log.Recovery
	Err       error
}

// Log gives a partition's log, or nil if there is none or it is offline; see PartitionError.
func (s *Store) Log(tp protocol.TopicPartition) *log.Log { panic("being written") }

// PartitionError says why a partition that is on this node has no log: its directory failed, or it is damaged.
// nil means that the partition works or was never here.
func (s *Store) PartitionError(tp protocol.TopicPartition) error { panic("being written") }

// Logs gives all logs that work, by topic and partition.
func (s *Store) Logs() []*log.Log { panic("being written") }

// ClusterID is the cluster's id as meta.properties has it.
func (s *Store) ClusterID() string { panic("being written") }

// Directories gives the log directories in the order of Options.Dirs.
func (s *Store) Directories() []Directory { panic("being written") }

// DirectoryOf gives the directory that holds a partition, offline or not.
func (s *Store) DirectoryOf(tp protocol.TopicPartition) (protocol.DirectoryID, bool) {
	panic("being written")
}

// HighWatermark is a partition's high watermark as the checkpoint last had it; 0 if it had none.
func (s *Store) HighWatermark(tp protocol.TopicPartition) protocol.Offset { panic("being written") }

// SetExclusive hands in how to run a task on a log while nobody else writes to it: the replica's append lock.
// run calls task exactly once, at once or later. Until it is set, tasks run directly.
func (s *Store) SetExclusive(run func(tp protocol.TopicPartition, task func())) {
	panic("being written")
}

// Create makes the log of a new partition, in the given directory or, if that is zero, in the one with the fewest
// partitions. A partition that is here already gives its log back if the topic id fits.
func (s *Store) Create(tp protocol.TopicPartition, topicID protocol.TopicID, dir protocol.DirectoryID) (*log.Log, error) {
	panic("being written")
}

// Delete takes a partition out of the store and renames its directory; the files go after file.delete.delay.ms.
// A partition that is not here is no error.
func (s *Store) Delete(now time.Time, tp protocol.TopicPartition) error { panic("being written") }

// SetStray takes a partition that the cluster does not know out of the store: its directory is renamed to
// <topic>-<partition>.<32 hex digits>-stray and kept for the operator.
func (s *Store) SetStray(now time.Time, tp protocol.TopicPartition) error { panic("being written") }

// FailDirectory takes a directory and its partitions offline.
func (s *Store) FailDirectory(id protocol.DirectoryID, reason error) { panic("being written") }

// Touch says that a partition's options or its log start changed, so that it is maintained at the next Tick.
func (s *Store) Touch(tp protocol.TopicPartition) { panic("being written") }

// Tick does what is due.
func (s *Store) Tick(now time.Time) { panic("being written") }

// NextDeadline is when Tick wants to be called next.
func (s *Store) NextDeadline() time.Time { panic("being written") }

// CheckpointHighWatermarks writes the high watermarks of partitions that changed; those of others stay.
func (s *Store) CheckpointHighWatermarks(offsets map[protocol.TopicPartition]protocol.Offset) error {
	panic("being written")
}

// Close closes all logs. A clean close flushes them, writes the checkpoints and, last, the clean-shutdown markers
// with the broker's epoch. The caller has made sure that nobody uses a log any more.
func (s *Store) Close(now time.Time, clean bool, brokerEpoch protocol.BrokerEpoch) error {
	panic("being written")
}
