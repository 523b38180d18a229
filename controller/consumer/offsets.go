package consumer

import (
	"ottla/protocol"
)

// commitHasMemberEpoch is the version from which on members of the next
// generation may commit.
const commitHasMemberEpoch = 9

// Commit is who commits offsets, in an OffsetCommit or, Transactional, in a
// TxnOffsetCommit.
type Commit struct {
	MemberID      string
	InstanceID    *string
	Epoch         int32 // of the member, or its generation; negative: it is no member
	Version       int16 // of the request
	Transactional bool
}

// MayCommit checks who commits. If check is not nil, it tells of each partition
// whether the commit is still of those who have it (KIP-1251): one refusal refuses
// the whole request.
func (g *Group) MayCommit(c Commit) (check func(topic string, id protocol.TopicID, partition int32) error, err error) {
	if c.Epoch < 0 && len(g.members) == 0 || c.Transactional && c.Epoch == -1 && c.MemberID == "" && c.InstanceID == nil {
		return nil, nil
	}
	m := g.members[c.MemberID]
	switch {
	case m == nil:
		return nil, g.unknownMember(c.MemberID)
	case !c.Transactional && m.Classic == nil && c.Version < commitHasMemberEpoch:
		return nil, protocol.Errorf(protocol.UnsupportedVersion,
			"OffsetCommit version 9 or above must be used by members using the consumer group protocol")
	case c.Epoch == m.Epoch:
		return nil, nil
	case c.Epoch > m.Epoch:
		return nil, m.stale("The commit is of epoch %d, the member is at %d.", c.Epoch, m.Epoch)
	}
	return func(topic string, id protocol.TopicID, partition int32) error {
		since, has := m.assignmentEpoch(id, partition)
		switch {
		case !has:
			return m.stale("Partition %s-%d is not assigned or pending revocation for member.", topic, partition)
		case c.Epoch < since:
			return m.stale("The commit is of epoch %d, the member got %s-%d at %d.", c.Epoch, topic, partition, since)
		}
		return nil
	}, nil
}

// stale is how a member is told that it speaks of an epoch that is not.
func (m *Member) stale(format string, args ...any) error {
	if m.Classic != nil {
		return protocol.Errorf(protocol.IllegalGeneration, format, args...)
	}
	return protocol.Errorf(protocol.StaleMemberEpoch, format, args...)
}

// MayFetch checks who asks for offsets: nobody in particular, or a member at its
// epoch.
func (g *Group) MayFetch(memberID *string, epoch int32) error {
	if memberID == nil && epoch < 0 {
		return nil
	}
	var m *Member
	if memberID != nil {
		m = g.members[*memberID]
	}
	switch {
	case m == nil:
		return protocol.UnknownMemberID.Err()
	case epoch != m.Epoch:
		return m.stale("The request is of epoch %d, the member is at %d.", epoch, m.Epoch)
	}
	return nil
}
