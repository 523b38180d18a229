package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// The requests of members of classic groups. The group's coordinator answers them;
// a JoinGroup or SyncGroup may wait there for other members.

// joinGroup takes a member into the next generation of its group.
func joinGroup(c *call, req *kmsg.JoinGroupRequest) {
	if req.Group == "" && c.mayGroup(kmsg.ACLOperationRead, "") { // told with the member's id, unlike other failures
		resp := errorResponse(req, protocol.InvalidGroupID.Err()).(*kmsg.JoinGroupResponse)
		resp.MemberID = req.MemberID
		c.reply(resp)
		return
	}
	c.relayGroup(req.Group, kmsg.ACLOperationRead, req)
}

// syncNamesProtocolFrom is the first version of SyncGroup in which a member has to
// name the protocol that it takes the group to have (KIP-559).
const syncNamesProtocolFrom = 5

// syncGroup gives a member its partitions, or takes them from the leader.
func syncGroup(c *call, req *kmsg.SyncGroupRequest) {
	if c.version >= syncNamesProtocolFrom && (req.ProtocolType == nil || req.Protocol == nil) {
		c.reply(errorResponse(req, protocol.InconsistentGroupProtocol.Err()))
		return
	}
	c.relayGroup(req.Group, kmsg.ACLOperationRead, req)
}

// heartbeat keeps a member in its group. While the coordinator is being loaded all
// is well: it gives every member a whole session then.
func heartbeat(c *call, req *kmsg.HeartbeatRequest) {
	if req.Group == "" || !c.mayGroup(kmsg.ACLOperationRead, req.Group) {
		c.relayGroup(req.Group, kmsg.ACLOperationRead, req)
		return
	}
	c.askGroup(req.Group, req, func(resp kmsg.Response, err error) {
		switch {
		case protocol.CodeOf(err) == protocol.CoordinatorLoadInProgress:
			resp = kmsg.NewPtrHeartbeatResponse()
		case err != nil:
			resp = errorResponse(req, err)
		}
		c.reply(resp)
	})
}

// leaveGroup removes members.
func leaveGroup(c *call, req *kmsg.LeaveGroupRequest) {
	c.relayGroup(req.Group, kmsg.ACLOperationRead, req)
}
