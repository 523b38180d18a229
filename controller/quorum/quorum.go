package quorum

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/storage/log"
	"ottla/storage/segment"
)

// Options is what node hands in.
type Options struct {
	Env     log.Env
	Dir     string // metadata.log.dir; the log lies in __cluster_metadata-0 below it
	Local   raft.ReplicaKey
	Trust   log.Trust
	Machine machine.Machine // nil on a node that observes
	// Observe makes this a node that follows the metadata and is no controller.
	Observe *Observe

	// StaticVoters are those of controller.quorum.voters; they count only where
	// kraft.version is 0, else the log's own voter set does (KIP-853).
	StaticVoters raft.VoterSet
	// Endpoints are this node's controller listeners. If they differ from those
	// in the voter set, a new set is written.
	Endpoints []raft.Endpoint

	SegmentBytes     int64         // metadata.log.segment.bytes
	SegmentAge       time.Duration // metadata.log.segment.ms
	SnapshotBytes    int64         // metadata.log.max.record.bytes.between.snapshots
	SnapshotAge      time.Duration // metadata.log.max.snapshot.interval.ms; 0 is never by age
	RetentionBytes   int64         // metadata.max.retention.bytes; -1 none
	RetentionAge     time.Duration // metadata.max.retention.ms; -1 none
	MaxQueuedRequest int           // submissions that may wait; 0: 10,000

	// OnImage is told of every Image in order, before the replies that led to
	// it are sent. The first call brings the whole replayed state, with the
	// empty Image before it.
	OnImage func(now time.Time, before, after *metadata.Image)
	// Wake is told that NextDeadline came nearer; it must not block.
	Wake func()
	// OnFatal is told once that the metadata log can no longer be written; the
	// node must stop. Everything pending was answered with NOT_CONTROLLER.
	OnFatal func(error)

	Logger *slog.Logger
}

// Quorum keeps the metadata log of one node.
type Quorum struct {
	options Options
	dir     string // of the partition
	pool    *compress.Pool

	queueMu  sync.Mutex
	queue    []submission
	arrivals []arrival // what came of requests to other nodes, for the next Tick
	draining bool
	ticking  bool // a Tick waits in the queue, or is being decided

	// What follows belongs to whoever drains the queue (or to Open).
	core         *raft.Core
	log          *log.Log
	loader       *metadata.Loader
	kraftVersion int16
	applied      protocol.Offset // the machine has applied everything below
	delivered    protocol.Offset // committed batches below this reached machine and loader
	active       bool            // the machine is activated
	fatal        error
	snapshots    snapshotState
	observed     observed

	image atomic.Pointer[metadata.Image]
	// Plain copies for readers outside (DescribeQuorum, metrics).
	status atomic.Pointer[Status]
}

// Status is how the quorum stands, for those who describe it.
type Status struct {
	Leader        protocol.NodeID
	LeaderAt      *raft.Address // on a node that observes, nil if it is not known
	Epoch         protocol.LeaderEpoch
	HighWatermark protocol.Offset
	LogEnd        protocol.Offset
	Voters        raft.VoterSet
	KRaftVersion  int16

	deadline time.Time
}

// Open reads quorum-state, the latest snapshot and the log. Damage in what was
// durable is refused with a *DamagedError and nothing on disk is changed.
func Open(now time.Time, options Options) (*Quorum, error) {
	q := &Quorum{
		options: options, pool: options.Env.Pool,
		dir: path.Join(options.Dir, protocol.ClusterMetadataTopic+"-0"),
	}
	if q.options.MaxQueuedRequest == 0 {
		q.options.MaxQueuedRequest = 10_000
	}
	if q.observes() {
		q.options.Machine = idle{}
	}
	state, known, err := readState(options.Env.FS, q.dir)
	if err != nil {
		return nil, err
	}
	if err := q.load(now, state, known); err != nil {
		return nil, err
	}
	q.tidy()
	q.publishStatus()
	return q, nil
}

// Start lets the core elect, replays what is committed and activates the
// machine. With one voter all of that has happened when it returns.
//
// A node that observes has then sent its first request, and publishes nothing
// before it is CaughtUp.
func (q *Quorum) Start(now time.Time) error {
	if !q.observes() && !q.core.Voters().OnlyVoter(q.options.Local) {
		return fmt.Errorf("node %d (directory %s) is not the only voter of the metadata quorum %v; "+
			"a quorum of several controllers is not served yet", q.options.Local.ID, q.options.Local.Directory, voterIDs(q.core.Voters()))
	}
	q.Tick(now)
	return q.fatal
}

func voterIDs(voters raft.VoterSet) []protocol.NodeID {
	ids := []protocol.NodeID{}
	for _, voter := range voters {
		ids = append(ids, voter.ID)
	}
	return ids
}

// Image is the last published one, nil before the first.
func (q *Quorum) Image() *metadata.Image { return q.image.Load() }

// Status tells how the quorum stands.
func (q *Quorum) Status() Status { return *q.status.Load() }

func (q *Quorum) publishStatus() {
	before := q.status.Load()
	deadline := earlier(q.core.NextDeadline(), q.snapshotDeadline())
	if q.active {
		deadline = earlier(deadline, q.options.Machine.NextDeadline())
	}
	q.status.Store(&Status{
		Leader: q.core.LeaderID(), LeaderAt: q.core.LeaderAddress(), Epoch: q.core.Epoch(), HighWatermark: q.core.HighWatermark(),
		LogEnd: q.log.View().LogEndOffset, Voters: q.core.Voters(), KRaftVersion: q.kraftVersion,
		deadline: deadline,
	})
	if q.options.Wake != nil && !deadline.IsZero() && (before == nil || before.deadline.IsZero() || deadline.Before(before.deadline)) {
		q.options.Wake()
	}
}

// Close ends it. What was submitted before is carried out and answered first,
// what comes later gets NOT_CONTROLLER. It must not be called by a callback.
func (q *Quorum) Close(now time.Time) error {
	var err error
	closed := make(chan struct{}) // somebody else may be at work
	q.submit(submission{now: now, alone: true, decide: func(machine.Turn) (machine.Result, error) {
		defer close(closed)
		q.resign()
		err = errors.Join(q.fatal, q.dropPart())
		if _, closing := q.log.Close(now, q.fatal == nil); err == nil {
			err = closing
		}
		return machine.Result{}, nil
	}})
	<-closed
	return err
}

func (q *Quorum) resign() {
	if q.active {
		q.active = false
		q.options.Machine.Resign()
	}
	q.core.Resign()
}

// openLog opens or creates the partition's log, as the walk found it.
func (q *Quorum) openLog(now time.Time, walked *walk, snapshot snapshotID) error {
	options := log.DefaultOptions()
	options.SegmentBytes, options.SegmentAge = q.options.SegmentBytes, q.options.SegmentAge
	options.RetentionBytes, options.RetentionAge = -1, -1
	options.Delete, options.Compact = true, false
	options.MaxMessageBytes = 0
	options.FlushMessages, options.FlushAge = 0, 0 // append flushes by itself
	tp := protocol.TopicPartition{Topic: protocol.ClusterMetadataTopic}
	var err error
	if walked.end == protocol.NoOffset {
		q.log, err = log.Create(q.options.Env, q.dir, tp, protocol.MetadataTopicID, options)
	} else {
		err = q.reopenLog(now, tp, options, walked)
	}
	if err != nil {
		return err
	}
	// A log that ends before the snapshot holds nothing that the snapshot lacks:
	// such is left where a replica that took a snapshot over was interrupted.
	if q.log.View().LogEndOffset < snapshot.End {
		return q.log.TruncateFullyAndStartAt(snapshot.End)
	}
	return nil
}

func (q *Quorum) reopenLog(now time.Time, tp protocol.TopicPartition, options log.Options, walked *walk) error {
	if err := q.settleEnd(walked); err != nil {
		return err
	}
	durable := walked.lastBase // with the indexes of the segments before it
	if walked.observer {
		durable = 0
	}
	opened, recovery, err := log.Open(q.options.Env, q.dir, tp, options, log.OpenState{RecoveryPoint: durable, Trust: q.options.Trust, Now: now})
	var damaged *log.DamagedError
	if errors.As(err, &damaged) {
		return &DamagedError{File: damaged.File, Position: damaged.Position, Reason: damaged.Reason}
	}
	if err != nil {
		return err
	}
	q.log = opened
	if end := opened.View().LogEndOffset; end != walked.end {
		return fmt.Errorf("%s: recovery made the log end at offset %d, though its valid batches end at %d", q.dir, end, walked.end)
	}
	if recovery.NoteWorthy() {
		q.options.Logger.Info("metadata log recovered", "bytesCut", recovery.BytesCut, "logEnd", walked.end)
	}
	if recovery.TopicIDLost {
		if err := q.log.SetTopicID(protocol.MetadataTopicID); err != nil {
			return err
		}
	}
	// What recovery left is what this start builds on, so it must be durable.
	return q.log.Flush(now)
}

// settleEnd takes a torn end off, and makes the rest durable. Recovery alone would
// not take it off: it does not doubt a batch whose checksum is right, though
// offset or epoch beside it are not. And it writes a producer snapshot of the
// log's end, which is evidence later that the log was durable up to there: so it
// must be before.
func (q *Quorum) settleEnd(walked *walk) error {
	bases, err := segmentBases(q.options.Env.FS, q.dir)
	if err != nil || len(bases) == 0 {
		return err
	}
	if len(walked.behind) > 0 {
		for _, base := range slices.Backward(walked.behind) {
			if err := segment.RemoveFiles(q.options.Env.Files, q.dir, base); err != nil {
				return err
			}
		}
		if err := q.options.Env.FS.SyncDir(q.dir); err != nil {
			return err
		}
	}
	name := walked.name(bases[len(bases)-1-len(walked.behind)])
	file, err := q.options.Env.FS.OpenFile(name, os.O_RDWR)
	if err != nil {
		return err
	}
	if walked.torn != nil {
		err = file.Truncate(walked.torn.Position)
	}
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("cannot make the end of %s durable: %w", name, err)
	}
	return nil
}

// ensureDir makes the partition's directory where serve starts on a directory
// that was formatted without one (as before 4.x with static voters).
func (q *Quorum) ensureDir() error {
	fsys := q.options.Env.FS
	if _, err := fsys.Stat(q.dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := fsys.MkdirAll(q.dir); err != nil {
		return err
	}
	return fsys.SyncDir(q.options.Dir)
}
