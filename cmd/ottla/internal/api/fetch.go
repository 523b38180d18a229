package api

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/session"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/wire"
	"ottla/storage/replica"
)

// readCommitted is the isolation level that hides open and aborted transactions.
const readCommitted int8 = 1

// knownIsolation tells whether there is an isolation level of a number. For another
// one Apache Kafka has no code of its own.
func knownIsolation(level int8) bool { return level == 0 || level == readCommitted }

// fetch reads from many partitions: the session says which (KIP-227), the replicas
// read or wait for more, and the session says which of the results are news.
func fetch(c *call, req *kmsg.FetchRequest) {
	image := c.Image()
	name := func(id protocol.TopicID) string { return topicName(image, id) }
	context, err := c.handler.sessions.decide(c.now, req, name)
	if err != nil {
		c.replyFetch(&wire.FetchResponse{ErrorCode: protocol.CodeOf(err)})
		return
	}
	if !knownIsolation(req.IsolationLevel) {
		c.refuseFetch(req, protocol.UnknownServerError)
		return
	}
	f := &fetching{call: c, context: context, request: replica.FetchRequest{
		Replica:       session.ReplicaID(req),
		ReplicaEpoch:  protocol.BrokerEpoch(req.ReplicaState.Epoch),
		ReadCommitted: req.IsolationLevel == readCommitted,
		MaxWait:       time.Duration(req.MaxWaitMillis) * time.Millisecond,
		ClientRack:    req.Rack,
		Version:       c.version,
	}}
	f.request.MaxBytes = int(min(req.MaxBytes, c.Config.Int("fetch.max.bytes")))
	f.request.MinBytes = min(int(req.MinBytes), f.request.MaxBytes)
	c.request.FromFollower = session.IsFollower(req)
	f.sort(image, c.request.FromFollower)
	if len(f.request.Partitions) == 0 {
		f.answer(nil)
		return
	}
	c.handler.polls.begin(c)
	cancel := c.Replicas.Fetch(c.now, f.request, func(results []replica.FetchResult) {
		c.handler.polls.end(c)
		c.guard(func() { f.answer(results) })
	})
	c.handler.polls.waits(c, cancel)
}

// refuseFetch answers a whole request with one error. Before version 13 it stands
// with each partition, too (FetchRequest.getErrorResponse).
func (c *call) refuseFetch(req *kmsg.FetchRequest, code protocol.ErrorCode) {
	resp := &wire.FetchResponse{ErrorCode: code, SessionID: req.SessionID}
	for i := range req.Topics {
		if c.version >= 13 {
			break
		}
		topic := wire.FetchTopic{Topic: req.Topics[i].Topic}
		for j := range req.Topics[i].Partitions {
			topic.Partitions = append(topic.Partitions, refused(req.Topics[i].Partitions[j].Partition, code))
		}
		resp.Topics = append(resp.Topics, topic)
	}
	c.replyFetch(resp)
}

// fetching is a Fetch under way.
type fetching struct {
	*call
	context *session.Context
	request replica.FetchRequest
	results []session.Result // one for each of context.Partitions
	read    []int            // which of them are those of request.Partitions
}

// sort separates what is to be read from what is refused at once: what does not
// exist, and what the requester may not read.
func (f *fetching) sort(image *metadata.Image, follower bool) {
	readable := f.readable(follower)
	partitions := f.context.Partitions()
	f.results = make([]session.Result, len(partitions))
	for i := range partitions {
		p := &partitions[i]
		tp := protocol.TopicPartition{Topic: p.Topic, Partition: p.Partition}
		f.results[i] = session.Result{TopicID: p.TopicID, Topic: p.Topic}
		switch known := p.Topic != "" || f.version < 13; {
		case follower && !readable(""):
			f.results[i].Data = refused(p.Partition, protocol.TopicAuthorizationFailed)
		case !known:
			f.results[i].Data = refused(p.Partition, protocol.UnknownTopicID)
		case !readable(p.Topic):
			f.results[i].Data = refused(p.Partition, protocol.TopicAuthorizationFailed)
		case image.Partition(tp) == nil:
			f.results[i].Data = refused(p.Partition, protocol.UnknownTopicOrPartition)
		default:
			f.read = append(f.read, i)
			f.request.Partitions = append(f.request.Partitions, replica.FetchPartition{
				Partition:          tp,
				TopicID:            p.TopicID,
				Offset:             p.FetchOffset,
				MaxBytes:           int(p.MaxBytes),
				CurrentLeaderEpoch: p.CurrentLeaderEpoch,
				LastFetchedEpoch:   p.LastFetchedEpoch,
				FollowerLogStart:   p.LogStartOffset,
			})
		}
	}
}

// readable tells which topics the requester may fetch: a follower all or none, by
// the right to act for the cluster; a consumer those it may read, each asked once.
func (f *fetching) readable(follower bool) func(topic string) bool {
	if follower {
		allowed := f.mayCluster(kmsg.ACLOperationClusterAction)
		return func(string) bool { return allowed }
	}
	asked := map[string]bool{}
	return func(topic string) bool {
		allowed, known := asked[topic]
		if !known {
			allowed = f.mayTopic(kmsg.ACLOperationRead, topic)
			asked[topic] = allowed
		}
		return allowed
	}
}

// refused is the part of a partition from which nothing was read.
func refused(partition int32, code protocol.ErrorCode) wire.FetchPartition {
	return wire.FetchPartition{
		Partition: partition, ErrorCode: code, HighWatermark: protocol.NoOffset, LastStableOffset: protocol.NoOffset,
		LogStartOffset: protocol.NoOffset, AbortedTransactions: []wire.AbortedTransaction{}, PreferredReadReplica: protocol.NoNode,
	}
}

// answer sends what was read. Every region is handed on or released.
func (f *fetching) answer(read []replica.FetchResult) {
	leaders := newLeaders(f.call)
	for i := range read {
		f.results[f.read[i]].Data = f.partition(f.request.Partitions[i].Partition, &read[i], leaders)
	}
	reply := f.handler.sessions.update(f.now, f.context, f.results)
	for i := range reply.Dropped {
		reply.Dropped[i].Data.Records.Release()
	}
	f.replyFetch(&wire.FetchResponse{
		ErrorCode: protocol.CodeOf(reply.Err), SessionID: reply.SessionID, Topics: session.Topics(reply.Results), NodeEndpoints: leaders.endpoints,
	})
}

// partition is one partition's part of the response.
func (f *fetching) partition(tp protocol.TopicPartition, result *replica.FetchResult, leaders *leaders) wire.FetchPartition {
	part := wire.FetchPartition{
		Partition:            tp.Partition,
		ErrorCode:            protocol.CodeOf(result.Err),
		HighWatermark:        result.HighWatermark,
		LastStableOffset:     result.LastStableOffset,
		LogStartOffset:       result.LogStartOffset,
		DivergingEpoch:       result.Diverging,
		AbortedTransactions:  result.Aborted,
		PreferredReadReplica: result.PreferredReadReplica,
		Records:              result.Records,
	}
	if part.ErrorCode == protocol.KafkaStorageError && f.version <= 5 {
		part.ErrorCode = protocol.NotLeaderOrFollower // version 6 brought the code
	}
	wrongNode := part.ErrorCode == protocol.NotLeaderOrFollower || part.ErrorCode == protocol.FencedLeaderEpoch
	if wrongNode && f.version >= leadersInFetchFrom {
		leader := leaders.of(tp, result.CurrentLeader)
		part.CurrentLeader = &leader
	}
	return part
}
