package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// deleteGroups deletes empty groups with what they have committed. One that is
// named twice is answered once.
func deleteGroups(c *call, req *kmsg.DeleteGroupsRequest) {
	var ids []string
	var refused []kmsg.DeleteGroupsResponseGroup
	for _, id := range once(req.Groups) {
		if !c.mayGroup(kmsg.ACLOperationDelete, id) {
			refused = append(refused, kmsg.DeleteGroupsResponseGroup{Group: id, ErrorCode: int16(protocol.GroupAuthorizationFailed)})
			continue
		}
		ids = append(ids, id)
	}
	deleted := make([]kmsg.DeleteGroupsResponseGroup, len(ids))
	message := func(at []int) kmsg.Request {
		ask := kmsg.NewPtrDeleteGroupsRequest()
		ask.Version = req.Version
		for _, n := range at {
			ask.Groups = append(ask.Groups, ids[n])
		}
		return ask
	}
	place := func(at []int, answer kmsg.Response, err error) {
		for i, n := range at {
			if err != nil {
				deleted[n] = kmsg.DeleteGroupsResponseGroup{Group: ids[n], ErrorCode: int16(protocol.CodeOf(err))}
				continue
			}
			deleted[n] = answer.(*kmsg.DeleteGroupsResponse).Groups[i]
		}
	}
	c.spreadGroups(len(ids), func(at int) string { return ids[at] }, message, place, func() {
		resp := kmsg.NewPtrDeleteGroupsResponse()
		resp.Groups = append(deleted, refused...)
		c.reply(resp)
	})
}
