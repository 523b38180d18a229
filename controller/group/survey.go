package group

import (
	"maps"
	"slices"

	"ottla/controller/offsets"
	"ottla/protocol"
)

// Survey asks what the metrics show of the groups of one partition. It is decided
// like a request, so what it tells is committed; it changes nothing. The reply is a
// *Surveyed.
type Survey struct {
	// MaxOffsets bounds the answer: of a coordinator with more committed offsets
	// none are told.
	MaxOffsets int
}

// Surveyed answers a Survey.
type Surveyed struct {
	Groups []SurveyedGroup // by name
	// TooMany says that there are more committed offsets than were asked for; those
	// of Groups are left out.
	TooMany bool
}

// SurveyedGroup is one group.
type SurveyedGroup struct {
	Name, State string
	Kind        string // classic or consumer
	Members     int
	Offsets     []SurveyedOffset // by topic and partition
}

// SurveyedOffset is the offset that a group has committed for a partition.
type SurveyedOffset struct {
	Partition protocol.TopicPartition
	Offset    protocol.Offset
}

func (c *Coordinator) survey(asked Survey) *Surveyed {
	reply := &Surveyed{TooMany: c.offsets.Count() > asked.MaxOffsets}
	for _, id := range slices.Sorted(maps.Keys(c.groups)) {
		surveyed := c.groups[id].survey()
		if !reply.TooMany {
			c.offsets.Each(id, func(topic string, partition int32, o offsets.Offset) {
				if o.Offset >= 0 { // what clients take for none is none
					tp := protocol.TopicPartition{Topic: topic, Partition: partition}
					surveyed.Offsets = append(surveyed.Offsets, SurveyedOffset{tp, o.Offset})
				}
			})
		}
		reply.Groups = append(reply.Groups, surveyed)
	}
	return reply
}

func (g *group) survey() SurveyedGroup {
	listed := g.list()
	return SurveyedGroup{Name: g.id, State: listed.GroupState, Kind: listed.GroupType, Members: g.members()}
}

// members counts those that the group has, of whatever kind.
func (g *group) members() int {
	if g.consumer != nil {
		return g.consumer.Size()
	}
	return len(g.classic.members)
}
