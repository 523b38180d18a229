package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
)

// Versions of OffsetFetch.
const (
	fetchHasErrorFrom  = 2  // the first with a code for a whole group
	fetchHasGroupsFrom = 8  // the first that asks about several groups (KIP-709)
	fetchHasIDsFrom    = 10 // the first that has topic ids instead of names
)

// fetchOffsets tells what groups have committed, of the topics that the requester
// may describe. Several groups may be asked about, of several partitions of
// __consumer_offsets; each has its own outcome.
func fetchOffsets(c *call, req *kmsg.OffsetFetchRequest) {
	f := &offsetFetch{call: c, image: c.Image(), stable: req.RequireStable}
	for i, asked := range groupsToFetch(req) {
		f.groups = append(f.groups, groupFetch{asked: asked, answer: kmsg.OffsetFetchResponseGroup{Group: asked.Group}})
		if !c.mayGroup(kmsg.ACLOperationDescribe, asked.Group) {
			f.fail(i, protocol.GroupAuthorizationFailed)
			continue
		}
		if asked.Topics != nil { // else all are asked for, and sorted out afterwards
			f.sort(&f.groups[i])
		}
		f.toAsk = append(f.toAsk, i)
	}
	c.spreadGroups(len(f.toAsk), func(n int) string { return f.groups[f.toAsk[n]].asked.Group }, f.message, f.place, f.finish)
}

// groupsToFetch gives what is asked for in the form of version 8.
func groupsToFetch(req *kmsg.OffsetFetchRequest) []kmsg.OffsetFetchRequestGroup {
	if req.Version >= fetchHasGroupsFrom {
		return req.Groups
	}
	one := kmsg.NewOffsetFetchRequestGroup()
	one.Group = req.Group
	if req.Topics != nil {
		one.Topics = make([]kmsg.OffsetFetchRequestGroupTopic, 0, len(req.Topics))
	}
	for _, t := range req.Topics {
		one.Topics = append(one.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: t.Topic, Partitions: t.Partitions})
	}
	return []kmsg.OffsetFetchRequestGroup{one}
}

// offsetFetch is an OffsetFetch whose groups are under way.
type offsetFetch struct {
	*call
	image  *metadata.Image
	stable bool
	groups []groupFetch
	toAsk  []int // places in groups
}

// groupFetch is one group of it. Of asked, the topics that were refused are gone.
type groupFetch struct {
	asked   kmsg.OffsetFetchRequestGroup
	refused []kmsg.OffsetFetchResponseGroupTopic
	answer  kmsg.OffsetFetchResponseGroup
}

// fail answers for a whole group.
func (f *offsetFetch) fail(at int, code protocol.ErrorCode) {
	g := &f.groups[at]
	if f.version >= fetchHasErrorFrom {
		g.answer.ErrorCode = int16(code)
		return
	}
	for i := range g.asked.Topics {
		g.answer.Topics = append(g.answer.Topics, unfetched(&g.asked.Topics[i], code))
	}
}

func unfetched(asked *kmsg.OffsetFetchRequestGroupTopic, code protocol.ErrorCode) kmsg.OffsetFetchResponseGroupTopic {
	topic := kmsg.OffsetFetchResponseGroupTopic{Topic: asked.Topic, TopicID: asked.TopicID}
	for _, partition := range asked.Partitions {
		topic.Partitions = append(topic.Partitions, kmsg.OffsetFetchResponseGroupTopicPartition{
			Partition: partition, Offset: int64(protocol.NoOffset), LeaderEpoch: int32(protocol.NoLeaderEpoch),
			Metadata: kmsg.StringPtr(""), ErrorCode: int16(code),
		})
	}
	return topic
}

// sort refuses topics that are unknown by their id or may not be described.
func (f *offsetFetch) sort(g *groupFetch) {
	topics := make([]kmsg.OffsetFetchRequestGroupTopic, 0, len(g.asked.Topics))
	for _, topic := range g.asked.Topics {
		if f.version >= fetchHasIDsFrom {
			topic.Topic = topicName(f.image, topic.TopicID)
		} else {
			topic.TopicID = protocol.ZeroUUID
		}
		switch {
		case topic.Topic == "" && f.version >= fetchHasIDsFrom:
			g.refused = append(g.refused, unfetched(&topic, protocol.UnknownTopicID))
		case !f.mayTopic(kmsg.ACLOperationDescribe, topic.Topic):
			g.refused = append(g.refused, unfetched(&topic, protocol.TopicAuthorizationFailed))
		default:
			topics = append(topics, topic)
		}
	}
	g.asked.Topics = topics
}

// message asks one coordinator about those of the groups that it holds.
func (f *offsetFetch) message(at []int) kmsg.Request {
	ask := kmsg.NewPtrOffsetFetchRequest()
	ask.Version, ask.RequireStable = max(f.version, fetchHasGroupsFrom), f.stable
	for _, n := range at {
		ask.Groups = append(ask.Groups, f.groups[f.toAsk[n]].asked)
	}
	return ask
}

func (f *offsetFetch) place(at []int, resp kmsg.Response, err error) {
	for i, n := range at {
		g := &f.groups[f.toAsk[n]]
		if err != nil {
			f.fail(f.toAsk[n], protocol.CodeOf(err))
			continue
		}
		g.answer = resp.(*kmsg.OffsetFetchResponse).Groups[i]
		switch {
		case g.answer.ErrorCode != 0:
		case g.asked.Topics == nil:
			g.answer.Topics = f.visible(g.answer.Topics)
		default:
			g.answer.Topics = append(g.answer.Topics, g.refused...)
		}
	}
}

// visible leaves the topics that the requester may describe, with their ids where
// the version has them instead of names: a topic that is gone has none.
func (f *offsetFetch) visible(topics []kmsg.OffsetFetchResponseGroupTopic) []kmsg.OffsetFetchResponseGroupTopic {
	var visible []kmsg.OffsetFetchResponseGroupTopic
	for _, topic := range topics {
		if !f.mayTopic(kmsg.ACLOperationDescribe, topic.Topic) {
			continue
		}
		if f.version >= fetchHasIDsFrom && protocol.TopicID(topic.TopicID).IsZero() {
			known := f.image.Topic(topic.Topic)
			if known == nil {
				continue
			}
			topic.TopicID = known.ID
		}
		visible = append(visible, topic)
	}
	return visible
}

func (f *offsetFetch) finish() {
	resp := kmsg.NewPtrOffsetFetchResponse()
	if f.version >= fetchHasGroupsFrom {
		for i := range f.groups {
			resp.Groups = append(resp.Groups, f.groups[i].answer)
		}
		f.reply(resp)
		return
	}
	one := &f.groups[0].answer
	resp.ErrorCode = one.ErrorCode
	for _, t := range one.Topics {
		topic := kmsg.OffsetFetchResponseTopic{Topic: t.Topic}
		for _, p := range t.Partitions {
			topic.Partitions = append(topic.Partitions, kmsg.OffsetFetchResponseTopicPartition{
				Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata, ErrorCode: p.ErrorCode,
			})
		}
		resp.Topics = append(resp.Topics, topic)
	}
	f.reply(resp)
}
