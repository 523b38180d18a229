package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// consumerGroupDescribe shows consumer groups and their members.
func consumerGroupDescribe(c *call, req *kmsg.ConsumerGroupDescribeRequest) {
	if !c.servesConsumerGroups() {
		c.reply(errorResponse(req, protocol.UnsupportedVersion.Err()))
		return
	}
	resp := kmsg.NewPtrConsumerGroupDescribeResponse()
	var ids []string
	for _, id := range req.Groups {
		switch {
		case !c.mayGroup(kmsg.ACLOperationDescribe, id):
			resp.Groups = append(resp.Groups, undescribedConsumerGroup(id, protocol.GroupAuthorizationFailed.Err()))
		case id == "":
			resp.Groups = append(resp.Groups, undescribedConsumerGroup(id, protocol.InvalidGroupID.Err()))
		default:
			ids = append(ids, id)
		}
	}
	described := make([]kmsg.ConsumerGroupDescribeResponseGroup, len(ids))
	message := func(at []int) kmsg.Request {
		ask := kmsg.NewPtrConsumerGroupDescribeRequest()
		ask.Version = req.Version
		for _, n := range at {
			ask.Groups = append(ask.Groups, ids[n])
		}
		return ask
	}
	place := func(at []int, answer kmsg.Response, err error) {
		for i, n := range at {
			if err != nil {
				described[n] = undescribedConsumerGroup(ids[n], err)
				continue
			}
			described[n] = c.showConsumerGroup(answer.(*kmsg.ConsumerGroupDescribeResponse).Groups[i], req.IncludeAuthorizedOperations)
		}
	}
	c.spreadGroups(len(ids), func(at int) string { return ids[at] }, message, place, func() {
		resp.Groups = append(resp.Groups, described...)
		c.reply(resp)
	})
}

// showConsumerGroup tells of a group what the requester may know: nothing if it
// may not describe a topic that a member has.
func (c *call) showConsumerGroup(g kmsg.ConsumerGroupDescribeResponseGroup, operations bool) kmsg.ConsumerGroupDescribeResponseGroup {
	hidden := func(of kmsg.Assignment) bool {
		return slices.ContainsFunc(of.TopicPartitions, func(t kmsg.AssignmentTopicPartition) bool { return !c.mayTopic(kmsg.ACLOperationDescribe, t.Topic) })
	}
	for i := range g.Members {
		if hidden(g.Members[i].Assignment) || hidden(g.Members[i].TargetAssignment) {
			return undescribedConsumerGroup(g.Group, protocol.Errorf(protocol.TopicAuthorizationFailed,
				"The group has described topic(s) that the client is not authorized to describe."))
		}
	}
	if operations && g.ErrorCode == 0 {
		g.AuthorizedOperations = c.authorizedOperations(kmsg.ACLResourceTypeGroup, g.Group)
	}
	return g
}

func undescribedConsumerGroup(id string, err error) kmsg.ConsumerGroupDescribeResponseGroup {
	group := kmsg.NewConsumerGroupDescribeResponseGroup()
	group.Group, group.ErrorCode, group.ErrorMessage = id, int16(protocol.CodeOf(err)), protocol.MessageOf(err)
	return group
}
