package replica

import (
	"time"

	"ottla/protocol"
	"ottla/protocol/wire"
)

// FollowerPosition is how far a follower's log goes: what its next fetch tells the leader.
type FollowerPosition struct {
	TopicID       protocol.TopicID
	Offset        protocol.Offset      // its end: where to fetch from
	LastEpoch     protocol.LeaderEpoch // of the last record; NoLeaderEpoch: not known, the leader cannot compare
	LogStart      protocol.Offset
	HighWatermark protocol.Offset
}

// LeaderData is what a fetch from the leader has given for one partition.
type LeaderData struct {
	Partition     protocol.TopicPartition
	LeaderEpoch   protocol.LeaderEpoch // that the fetch carried
	Offset        protocol.Offset      // that was asked for
	Records       []byte               // batches; the last may be incomplete; not kept
	HighWatermark protocol.Offset      // of the leader
	LogStart      protocol.Offset      // of the leader
}

// BeginFollowing gives the position from which a follower is to fetch in a leader epoch, after cutting a log whose
// leader epochs are not known down to what is committed (KIP-101). The errors of this and of the next three:
// NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH if the replica does not follow in that epoch (any more),
// KAFKA_STORAGE_ERROR if its disk failed, UNKNOWN_TOPIC_OR_PARTITION; or a wrapped ENOSPC or EDQUOT, which passes.
func (m *Manager) BeginFollowing(now time.Time, tp protocol.TopicPartition, epoch protocol.LeaderEpoch) (FollowerPosition, error) {
	panic("not yet")
}

// AppendFromLeader appends what the leader has sent, as it is, and takes over its high watermark and log start.
// CORRUPT_MESSAGE: a batch is damaged or does not continue the log; what came before it is appended.
func (m *Manager) AppendFromLeader(now time.Time, data LeaderData) (FollowerPosition, error) {
	panic("not yet")
}

// TruncateToLeader cuts a follower's log where it may differ from the leader's: diverging is what the leader answered
// to a fetch (KIP-595), the largest epoch not above the follower's last, and its end at the leader.
func (m *Manager) TruncateToLeader(now time.Time, tp protocol.TopicPartition, epoch protocol.LeaderEpoch, diverging wire.EpochEndOffset) (FollowerPosition, error) {
	panic("not yet")
}

// FitToLeader follows OFFSET_OUT_OF_RANGE: a log that ends beyond the leader's is cut to the leader's end, one that ends
// before the leader's start begins anew there (AbstractFetcherThread.fetchOffsetAndTruncate).
func (m *Manager) FitToLeader(now time.Time, tp protocol.TopicPartition, epoch protocol.LeaderEpoch, leaderStart, leaderEnd protocol.Offset) (FollowerPosition, error) {
	panic("not yet")
}
