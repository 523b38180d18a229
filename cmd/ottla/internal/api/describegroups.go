package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// describeTellsOperationsFrom is the first version of DescribeGroups that tells, if
// asked, what the requester may do to a group (KIP-430).
const describeTellsOperationsFrom = 3

// describeGroups shows groups and their members.
func describeGroups(c *call, req *kmsg.DescribeGroupsRequest) {
	resp := kmsg.NewPtrDescribeGroupsResponse()
	var ids []string
	for _, id := range req.Groups {
		if !c.mayGroup(kmsg.ACLOperationDescribe, id) {
			resp.Groups = append(resp.Groups, undescribedGroup(id, protocol.GroupAuthorizationFailed))
			continue
		}
		ids = append(ids, id)
	}
	described := make([]kmsg.DescribeGroupsResponseGroup, len(ids))
	message := func(at []int) kmsg.Request {
		ask := kmsg.NewPtrDescribeGroupsRequest()
		ask.Version = req.Version
		for _, n := range at {
			ask.Groups = append(ask.Groups, ids[n])
		}
		return ask
	}
	place := func(at []int, answer kmsg.Response, err error) {
		for i, n := range at {
			if err != nil {
				described[n] = undescribedGroup(ids[n], protocol.CodeOf(err))
				continue
			}
			described[n] = answer.(*kmsg.DescribeGroupsResponse).Groups[i]
			if g := &described[n]; c.version >= describeTellsOperationsFrom && req.IncludeAuthorizedOperations && g.ErrorCode == 0 {
				g.AuthorizedOperations = c.authorizedOperations(kmsg.ACLResourceTypeGroup, g.Group)
			}
		}
	}
	c.spreadGroups(len(ids), func(at int) string { return ids[at] }, message, place, func() {
		resp.Groups = append(resp.Groups, described...)
		c.reply(resp)
	})
}

func undescribedGroup(id string, code protocol.ErrorCode) kmsg.DescribeGroupsResponseGroup {
	group := kmsg.NewDescribeGroupsResponseGroup()
	group.Group, group.ErrorCode = id, int16(code)
	return group
}
