package api

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// listGroups lists the groups that this node coordinates: all of them to those who
// may describe the cluster, else those that the requester may describe. If one
// partition cannot tell yet, there is no list: half of one would look whole.
func listGroups(c *call, req *kmsg.ListGroupsRequest) {
	partitions := c.Groups.Partitions()
	l := &listing{call: c, request: req, answers: make([]listed, len(partitions))}
	l.left.Store(int32(len(partitions)) + 1) // one for this function
	for i, partition := range partitions {
		ask := *req
		c.askGroupPartition(partition, &ask, func(resp kmsg.Response, err error) {
			if err != nil {
				l.answers[i].err = err
			} else {
				l.answers[i].groups = resp.(*kmsg.ListGroupsResponse).Groups
			}
			l.finish()
		})
	}
	l.finish()
}

// listing is a ListGroups whose partitions are under way.
type listing struct {
	*call
	request *kmsg.ListGroupsRequest
	answers []listed
	left    atomic.Int32
}

// listed is the answer of one partition.
type listed struct {
	groups []kmsg.ListGroupsResponseGroup
	err    error
}

// finish counts one partition; the last one answers.
func (l *listing) finish() {
	if l.left.Add(-1) > 0 {
		return
	}
	resp := kmsg.NewPtrListGroupsResponse()
	all := l.mayCluster(kmsg.ACLOperationDescribe)
	for i := range l.answers {
		switch code := protocol.CodeOf(l.answers[i].err); code {
		case protocol.None, protocol.NotCoordinator: // the latter lost it just now: its groups are another's
		default:
			l.reply(errorResponse(l.request, l.answers[i].err))
			return
		}
		for _, g := range l.answers[i].groups {
			if all || l.mayGroup(kmsg.ACLOperationDescribe, g.Group) {
				resp.Groups = append(resp.Groups, g)
			}
		}
	}
	l.reply(resp)
}
