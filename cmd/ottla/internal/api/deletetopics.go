package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
)

// deleteTopics asks the controller to delete the topics that the requester may
// delete, by name or, from version 6 on, by id (KIP-516).
func deleteTopics(c *call, req *kmsg.DeleteTopicsRequest) {
	switch { // delete.topic.enable is the controller's affair
	case c.request.Conn.Scope() == protocol.OnController && !c.Config.Bool("delete.topic.enable"):
		c.replyDeleted(errorResponse(req, protocol.TopicDeletionDisabled.Err()).(*kmsg.DeleteTopicsResponse))
		return
	case req.TimeoutMillis <= 0:
		c.reply(errorResponse(req, protocol.RequestTimedOut.Err()))
		return
	}
	ask := kmsg.NewPtrDeleteTopicsRequest()
	ask.Version, ask.TimeoutMillis = protocol.APIOf(protocol.DeleteTopics).MaxVersion, req.TimeoutMillis
	sorter := deletions{call: c, image: c.Image(), all: c.mayCluster(kmsg.ACLOperationDelete)}
	ask.Topics = sorter.sort(deleteTopicsAsked(req))
	c.askController(ask, func(resp kmsg.Response, err error) {
		if err != nil {
			c.reply(errorResponse(req, c.unreached(err)))
			return
		}
		answer := resp.(*kmsg.DeleteTopicsResponse)
		answer.Topics = append(sorter.refused, answer.Topics...)
		for i := range answer.Topics {
			if t := &answer.Topics[i]; t.ErrorMessage == nil && t.ErrorCode != int16(protocol.TopicDeletionDisabled) {
				t.ErrorMessage = sentenceOf(protocol.ErrorCode(t.ErrorCode).Err())
			}
		}
		c.replyDeleted(answer)
	})
}

// replyDeleted replies in the words of the version: below 3 there is no code for
// deletion being switched off.
func (c *call) replyDeleted(resp *kmsg.DeleteTopicsResponse) {
	for i := range resp.Topics {
		if t := &resp.Topics[i]; c.version < 3 && t.ErrorCode == int16(protocol.TopicDeletionDisabled) {
			t.ErrorCode = int16(protocol.InvalidRequest)
		}
	}
	c.reply(resp)
}

// deleteTopicsAsked gives the topics of a request in the form of version 6.
func deleteTopicsAsked(req *kmsg.DeleteTopicsRequest) []kmsg.DeleteTopicsRequestTopic {
	if req.Version >= 6 {
		return req.Topics
	}
	topics := make([]kmsg.DeleteTopicsRequestTopic, len(req.TopicNames))
	for i, name := range req.TopicNames {
		topics[i].Topic = kmsg.StringPtr(name)
	}
	return topics
}

// deletions parts the topics that go to the controller from those that are answered
// here.
type deletions struct {
	*call
	image   *metadata.Image
	all     bool // the requester may delete every topic
	refused []kmsg.DeleteTopicsResponseTopic
}

func (d *deletions) refuse(name *string, id protocol.TopicID, err *protocol.Error) {
	topic := kmsg.NewDeleteTopicsResponseTopic()
	topic.Topic, topic.TopicID, topic.ErrorCode, topic.ErrorMessage = name, id, int16(err.Code), sentenceOf(err)
	d.refused = append(d.refused, topic)
}

// sort refuses what is named twice, wrongly or without right. A topic that is named
// by name and by id is not deleted, and told once.
func (d *deletions) sort(asked []kmsg.DeleteTopicsRequestTopic) (granted []kmsg.DeleteTopicsRequestTopic) {
	names, ids := map[string]int{}, map[protocol.TopicID]int{}
	for i := range asked {
		switch name, id := asked[i].Topic, protocol.TopicID(asked[i].TopicID); {
		case name == nil && !id.IsZero():
			ids[id]++
		case name != nil && id.IsZero():
			names[*name]++
		}
	}
	for _, topic := range asked {
		name, id := topic.Topic, protocol.TopicID(topic.TopicID)
		switch {
		case name == nil && id.IsZero():
			d.refuse(nil, id, protocol.Errorf(protocol.InvalidRequest, "Neither topic name nor id were specified."))
		case name != nil && !id.IsZero():
			d.refuse(name, id, protocol.Errorf(protocol.InvalidRequest, "You may not specify both topic name and topic id."))
		case name != nil && names[*name] != 1:
			if names[*name] > 1 {
				d.refuse(name, id, protocol.Errorf(protocol.InvalidRequest, "Duplicate topic name."))
			}
			names[*name] = -1
		case name == nil && ids[id] != 1:
			if ids[id] > 1 {
				d.refuse(nil, id, protocol.Errorf(protocol.InvalidRequest, "Duplicate topic id."))
			}
			ids[id] = -1
		case name != nil && d.mayDeleteName(*name, ids), name == nil && d.mayDeleteID(id, names):
			granted = append(granted, topic)
		}
	}
	return granted
}

// mayDeleteName tells whether a name goes to the controller, else refuses it.
func (d *deletions) mayDeleteName(name string, ids map[protocol.TopicID]int) bool {
	deletable := d.all || d.mayTopic(kmsg.ACLOperationDelete, name)
	if !deletable && !d.mayTopic(kmsg.ACLOperationDescribe, name) {
		d.refuse(&name, protocol.ZeroUUID, protocol.TopicAuthorizationFailed.Err())
		return false
	}
	topic := d.image.Topic(name)
	switch {
	case topic == nil && !deletable: // he may see that it is not there
		d.refuse(&name, protocol.ZeroUUID, protocol.UnknownTopicOrPartition.Err())
	case topic != nil && !deletable:
		d.refuse(&name, protocol.ZeroUUID, protocol.TopicAuthorizationFailed.Err())
	case topic != nil && ids[topic.ID] != 0:
		d.refuse(&name, topic.ID, protocol.Errorf(protocol.InvalidRequest, "The provided topic name maps to an ID that was already supplied."))
	default:
		return true
	}
	return false
}

// mayDeleteID is mayDeleteName for an id. An id that this node does not know (yet)
// goes to the controller if the requester may delete every topic.
func (d *deletions) mayDeleteID(id protocol.TopicID, names map[string]int) bool {
	topic := d.image.TopicByID(id)
	switch {
	case topic == nil && d.all:
		return true
	case topic == nil:
		d.refuse(nil, id, protocol.UnknownTopicID.Err())
	case d.all || d.mayTopic(kmsg.ACLOperationDelete, topic.Name):
		return names[topic.Name] != 1 // else the name is refused, for both
	case d.mayTopic(kmsg.ACLOperationDescribe, topic.Name):
		d.refuse(&topic.Name, id, protocol.TopicAuthorizationFailed.Err())
	default:
		d.refuse(nil, id, protocol.TopicAuthorizationFailed.Err())
	}
	return false
}
