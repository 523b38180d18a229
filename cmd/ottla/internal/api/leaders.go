package api

import (
	"slices"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/wire"
)

// First versions whose responses name the leader to those who came to the wrong
// node, and where it listens (KIP-951).
const (
	leadersInProduceFrom = 10
	leadersInFetchFrom   = 16
)

// leaders collects where the leaders listen that one response names.
type leaders struct {
	call      *call
	image     *metadata.Image
	endpoints []wire.NodeEndpoint
}

func newLeaders(c *call) *leaders { return &leaders{call: c} }

// of gives a partition's leader, as the replica knows it (if it does) or else the
// metadata; -1 and -1 if nobody knows.
func (l *leaders) of(tp protocol.TopicPartition, known *wire.LeaderIDAndEpoch) wire.LeaderIDAndEpoch {
	if l.image == nil {
		l.image = l.call.Image()
	}
	leader := wire.LeaderIDAndEpoch{ID: protocol.NoNode, Epoch: protocol.NoLeaderEpoch}
	if known != nil {
		leader = *known
	} else if p := l.image.Partition(tp); p != nil {
		leader = wire.LeaderIDAndEpoch{ID: p.Leader, Epoch: p.LeaderEpoch}
	}
	if !slices.ContainsFunc(l.endpoints, func(e wire.NodeEndpoint) bool { return e.ID == leader.ID }) {
		if at := l.call.endpoint(l.image, leader.ID); at != nil {
			l.endpoints = append(l.endpoints, *at)
		}
	}
	return leader
}

// topicName gives the name of a topic id, "" if there is none.
func topicName(image *metadata.Image, id protocol.TopicID) string {
	if topic := image.TopicByID(id); topic != nil {
		return topic.Name
	}
	return ""
}
