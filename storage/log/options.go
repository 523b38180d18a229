package log

import (
	"fmt"
	"log/slog"
	"time"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/storage/groupcommit"
	"ottla/storage/logconfig"
	"ottla/storage/segment"
	"ottla/storage/space"
	"ottla/storage/vfs"
)

// Options is what the topic's configuration asks of a log.
type Options = logconfig.Options

// DefaultOptions are the defaults of Apache Kafka 4.4.0.
func DefaultOptions() Options { return logconfig.Default() }

// Env is what a log takes from its node.
type Env struct {
	FS     vfs.FS
	Files  *segment.FileCache
	Pool   *compress.Pool
	Logger *slog.Logger     // nil: silent
	Random func() uint64    // segment jitter; nil: none
	Space  *space.Directory // what is left in the directory; nil: nobody is refused

	// MaxDecompressed bounds what one batch may expand to when records are read, in bytes; 0: 1 GiB.
	MaxDecompressed int

	// LowerRecoveryPoint is called before a truncation cuts below DurableEnd or LogStartOffset, and must make the lower recovery
	// point durable before it returns: otherwise a crash in between leaves a log that ends before its recovery
	// point, which is what lost data looks like. If the checkpoint of the log's start is above offset it must be
	// lowered too, whatever DurableEnd was. It is called under the caller's serialisation. nil: nobody keeps a checkpoint (tests, tools).
	LowerRecoveryPoint func(tp protocol.TopicPartition, offset protocol.Offset) error
	// SyncParent makes the names in the log directory durable, where one sync may do for logs that are created side by
	// side. nil: Create syncs it itself.
	SyncParent func() error
	// Together makes flushes durable with those of others in the directory; nil: each by itself.
	Together *groupcommit.Directory
}

// Trust says how much of a directory may be believed at Open.
type Trust int8

const (
	// Clean: closed in order (.kafka_cleanshutdown). Nothing is scanned.
	Clean Trust = iota
	// SameBoot: the process died, the machine did not: the page cache is whole. Only what lies beyond the
	// last index entry of the last segment is checked.
	SameBoot
	// OtherBoot: power may have been lost: everything beyond the recovery point is checked.
	OtherBoot
)

// OpenState is what the node's checkpoints say of a log.
type OpenState struct {
	RecoveryPoint  protocol.Offset // all below is durable (recovery-point-offset-checkpoint)
	LogStartOffset protocol.Offset // log-start-offset-checkpoint; 0 if none
	Trust          Trust
	Now            time.Time // for the expiry of producers; zero: none expire at open
}

// Recovery says in numbers what Open did.
type Recovery struct {
	Segments         int             // segments of the opened log
	SegmentsScanned  int             // whose batches were walked
	BatchesScanned   int64           // batch headers read
	BytesChecked     int64           // bytes whose checksum was computed
	BytesCut         int64           // bytes cut off the unsynced tail
	CutAt            protocol.Offset // the end of the log after a cut, else -1
	SegmentsRemoved  int             // segments beyond a hole, or beyond the cut
	IndexesRebuilt   int             // .index, .timeindex or .txnindex files written anew
	SnapshotsDropped int             // damaged .snapshot files removed
	EpochsRebuilt    bool            // leader-epoch-checkpoint made anew
	TopicIDLost      bool            // partition.metadata cannot be read; see SetTopicID
	StrayFiles       int             // .deleted, .cleaned, .swap and .tmp files, orphaned indexes and snapshots dealt with
}

// NoteWorthy tells whether anything had to be repaired.
func (r Recovery) NoteWorthy() bool {
	return r.BytesCut > 0 || r.SegmentsRemoved > 0 || r.IndexesRebuilt > 0 || r.SnapshotsDropped > 0 || r.EpochsRebuilt
}

// DamagedError says that bytes that were durable are gone or garbled. What is left of them was not touched.
type DamagedError struct {
	File     string // path
	Position int64  // byte in the file
	Reason   string // a sentence
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d: %s", e.File, e.Position, e.Reason)
}
