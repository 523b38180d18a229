package group

import (
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/offsets"
	"ottla/protocol"
)

// describeTellsMissing is the version from which on a group that does not exist
// is an error (KIP-1043); before, it is Dead.
const describeTellsMissing = 6

// describeGroups shows classic groups and their members.
func (c *Coordinator) describeGroups(m *kmsg.DescribeGroupsRequest) kmsg.Response {
	response := m.ResponseKind().(*kmsg.DescribeGroupsResponse)
	for _, id := range m.Groups {
		described := kmsg.NewDescribeGroupsResponseGroup()
		described.Group = id
		if g := c.classicGroup(id); g != nil {
			g.describe(&described)
		} else {
			described.State = "Dead"
			if m.Version >= describeTellsMissing {
				text := "Group " + id + " not found."
				if c.lookup(id) != nil {
					text = "Group " + id + " is not a classic group."
				}
				described.ErrorCode, described.ErrorMessage = code(protocol.GroupIDNotFound), &text
			}
		}
		response.Groups = append(response.Groups, described)
	}
	return response
}

// describe shows the protocol and what members sent for it in a Stable group
// only: otherwise it may be changing.
func (g *classicGroup) describe(described *kmsg.DescribeGroupsResponseGroup) {
	described.State, described.ProtocolType = g.state.String(), g.protocolType
	stable := g.state == stateStable
	if stable {
		described.Protocol = g.protocolName()
	}
	for _, m := range g.order {
		shown := kmsg.DescribeGroupsResponseGroupMember{
			MemberID: m.id, InstanceID: m.instanceID, ClientID: m.clientID, ClientHost: m.clientHost, MemberAssignment: m.assignment,
		}
		if stable {
			shown.ProtocolMetadata = m.metadata(g.protocolName())
		}
		described.Members = append(described.Members, shown)
	}
}

// listGroups lists the groups of this partition, filtered by state and type
// without regard to case.
func (c *Coordinator) listGroups(m *kmsg.ListGroupsRequest) kmsg.Response {
	response := m.ResponseKind().(*kmsg.ListGroupsResponse)
	for _, id := range slices.Sorted(maps.Keys(c.groups)) {
		listed := c.groups[id].list()
		if admits(m.StatesFilter, listed.GroupState) && admits(m.TypesFilter, listed.GroupType) {
			response.Groups = append(response.Groups, listed)
		}
	}
	return response
}

func (g *group) list() kmsg.ListGroupsResponseGroup {
	if g.consumer != nil {
		return kmsg.ListGroupsResponseGroup{Group: g.id, ProtocolType: consumerProtocol, GroupState: g.consumer.State(), GroupType: "consumer"}
	}
	return kmsg.ListGroupsResponseGroup{
		Group: g.id, ProtocolType: g.classic.protocolType, GroupState: g.classic.state.String(), GroupType: "classic",
	}
}

func admits(filter []string, value string) bool {
	return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(strings.TrimSpace(f), value) })
}

// deleteGroups deletes empty groups and their offsets.
func (c *Coordinator) deleteGroups(d *decision, m *kmsg.DeleteGroupsRequest) kmsg.Response {
	response := m.ResponseKind().(*kmsg.DeleteGroupsResponse)
	for i, id := range m.Groups {
		if slices.Contains(m.Groups[:i], id) {
			continue
		}
		outcome := protocol.GroupIDNotFound
		if g := c.lookup(id); g != nil {
			outcome = g.mayDelete()
		}
		if outcome == protocol.None {
			c.offsets.EachAny(id, func(topic string, partition int32) {
				d.records = append(d.records, offsets.Tombstone(id, topic, partition))
			})
			c.writeTombstones(d, c.lookup(id))
		}
		response.Groups = append(response.Groups, kmsg.DeleteGroupsResponseGroup{Group: id, ErrorCode: code(outcome)})
	}
	return response
}
