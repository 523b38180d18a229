package api

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

func describing(groups ...string) *kmsg.DescribeGroupsRequest {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups, req.IncludeAuthorizedOperations = groups, true
	return req
}

// BEHAVIOUR 107: groups of several partitions, one of which another node has.
func TestDescribeGroups(t *testing.T) {
	authorizer := deny("secret")
	f := newFixture(t, func(n *Node) { n.Authorize = authorizer })
	f.topic("orders", topicSpec{})
	f.coordinate()
	groups := groupsOnEachPartition()
	p := f.connect()
	busy := f.alone(groups[0])
	p.commit(groups[1], "orders", 1)
	f.lead(groups[2], 2)
	versions(t, protocol.DescribeGroups, func(t *testing.T, version int16) {
		resp := request[*kmsg.DescribeGroupsResponse](p, describing(append([]string{"secret"}, groups...)...), version)
		missing := codeOf(protocol.None)
		if version >= 6 {
			missing = protocol.GroupIDNotFound
		}
		want := []struct {
			group, state string
			code         codeOf
			members      int
		}{
			{"secret", "", protocol.GroupAuthorizationFailed, 0},
			{groups[0], "Stable", 0, 1},
			{groups[1], "Empty", 0, 0},
			{groups[2], "", protocol.NotCoordinator, 0},
			{groups[3], "Dead", missing, 0},
		}
		for i, w := range want {
			g := resp.Groups[i]
			if g.Group != w.group || g.State != w.state || codeOf(g.ErrorCode) != w.code || len(g.Members) != w.members {
				t.Errorf("%+v is not %+v", g, w)
			}
			operations := int32(-1 << 31)
			if version >= 3 && w.code == 0 {
				operations = 3400
			}
			if g.AuthorizedOperations != operations {
				t.Errorf("%s: operations %d", w.group, g.AuthorizedOperations)
			}
		}
		m := resp.Groups[1].Members[0]
		if m.MemberID != busy.id || m.ClientID != "test" || m.ClientHost[0] != '/' || string(m.MemberAssignment) != "all" {
			t.Errorf("member %+v", m)
		}
	})
	if !authorizer.wasAsked(kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeGroup, "secret") {
		t.Errorf("asked: %v", authorizer.asked)
	}
	if resp := request[*kmsg.DescribeGroupsResponse](p, describing(), 5); len(resp.Groups) != 0 {
		t.Errorf("no group: %+v", resp)
	}
}

func groupIDs(resp *kmsg.ListGroupsResponse) []string {
	var ids []string
	for _, g := range resp.Groups {
		ids = append(ids, g.Group)
	}
	slices.Sort(ids)
	return ids
}

// BEHAVIOUR 108, and no half list while a partition is being loaded.
func TestListGroups(t *testing.T) {
	authorizer := deny()
	f := newFixture(t, func(n *Node) { n.Authorize = authorizer })
	p := f.connect()
	list := func(version int16, states, types []string) *kmsg.ListGroupsResponse {
		req := kmsg.NewPtrListGroupsRequest()
		req.StatesFilter, req.TypesFilter = states, types
		return request[*kmsg.ListGroupsResponse](p, req, version)
	}
	if resp := list(5, nil, nil); resp.ErrorCode != 0 || len(resp.Groups) != 0 {
		t.Errorf("without the topic: %+v", resp)
	}
	f.topic("orders", topicSpec{})
	f.createOffsetsTopic(offsetsPartitions)
	if resp := list(5, nil, nil); codeOf(resp.ErrorCode) != protocol.CoordinatorLoadInProgress || len(resp.Groups) != 0 {
		t.Errorf("while loading: %+v", resp)
	}
	f.settle()
	groups := groupsOnEachPartition()
	f.alone(groups[0])
	for _, g := range groups[1:] {
		p.commit(g, "orders", 1)
	}
	sorted := slices.Sorted(slices.Values(groups))
	versions(t, protocol.ListGroups, func(t *testing.T, version int16) {
		if resp := list(version, nil, nil); !slices.Equal(groupIDs(resp), sorted) {
			t.Errorf("%+v", resp)
		}
		if version >= 4 {
			if resp := list(version, []string{"stable"}, nil); !slices.Equal(groupIDs(resp), groups[:1]) || resp.Groups[0].GroupState != "Stable" {
				t.Errorf("Stable: %+v", resp)
			}
		}
		if version >= 5 {
			if resp := list(version, nil, []string{"consumer"}); len(resp.Groups) != 0 {
				t.Errorf("of another type: %+v", resp)
			}
			if resp := list(version, nil, []string{"Classic"}); len(resp.Groups) != 4 || resp.Groups[0].GroupType != "classic" {
				t.Errorf("classic: %+v", resp)
			}
		}
	})
	authorizer.names = map[string]bool{clusterResource: true, groups[1]: true}
	if resp := list(5, nil, nil); slices.Contains(groupIDs(resp), groups[1]) || len(resp.Groups) != 3 {
		t.Errorf("with few rights: %+v", resp)
	}
	f.lead(groups[3], 2)
	authorizer.names = map[string]bool{}
	if resp := list(5, nil, nil); resp.ErrorCode != 0 || len(resp.Groups) != 3 {
		t.Errorf("with a partition on another node: %+v", resp)
	}
}

func TestDeleteGroups(t *testing.T) {
	authorizer := deny("secret")
	f := newFixture(t, func(n *Node) { n.Authorize = authorizer })
	f.topic("orders", topicSpec{})
	f.coordinate()
	groups := groupsOnEachPartition()
	p := f.connect()
	f.alone(groups[0])
	f.lead(groups[2], 2)
	versions(t, protocol.DeleteGroups, func(t *testing.T, version int16) {
		p.commit(groups[1], "orders", 1)
		req := kmsg.NewPtrDeleteGroupsRequest()
		req.Groups = append([]string{"secret", groups[1]}, groups...)
		resp := request[*kmsg.DeleteGroupsResponse](p, req, version)
		got := map[string]codeOf{}
		for _, g := range resp.Groups {
			got[g.Group] = codeOf(g.ErrorCode)
		}
		want := map[string]codeOf{
			"secret": protocol.GroupAuthorizationFailed, groups[0]: protocol.NonEmptyGroup, groups[1]: protocol.None,
			groups[2]: protocol.NotCoordinator, groups[3]: protocol.GroupIDNotFound,
		}
		if len(resp.Groups) != len(want) || !equalMaps(got, want) {
			t.Errorf("%+v", resp)
		}
		if _, offsets := offsetsIn(request[*kmsg.OffsetFetchResponse](p, askingFor(9, groups[1], ""), 9), 0); len(offsets) != 0 {
			t.Errorf("offsets of a deleted group: %v", offsets)
		}
	})
	if !authorizer.wasAsked(kmsg.ACLOperationDelete, kmsg.ACLResourceTypeGroup, "secret") {
		t.Errorf("asked: %v", authorizer.asked)
	}
}
