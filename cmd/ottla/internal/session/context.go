package session

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/wire"
)

// Epochs with a meaning of their own.
const (
	initialEpoch = 0  // asks for a new session
	finalEpoch   = -1 // closes a session, or wants none
)

const topicIDsFrom = 13 // the version of Fetch that names topics by id

// Partition is one partition to fetch, as a request or its session has it.
type Partition struct {
	TopicID            protocol.TopicID // zero in a session by names
	Topic              string           // empty if the id is not known (UNKNOWN_TOPIC_ID)
	Partition          int32
	FetchOffset        protocol.Offset
	LogStartOffset     protocol.Offset // the follower's
	MaxBytes           int32
	CurrentLeaderEpoch protocol.LeaderEpoch // NoLeaderEpoch: not checked
	LastFetchedEpoch   protocol.LeaderEpoch // NoLeaderEpoch: not checked
}

func (p *Partition) key() key { return keyOf(p.TopicID, p.Topic, p.Partition) }

// Result is what reading one partition gave.
type Result struct {
	TopicID protocol.TopicID
	Topic   string
	Data    wire.FetchPartition // Data.Partition is the partition's number
}

// Reply is what a response carries.
type Reply struct {
	Err       error // a *protocol.Error for the top level, or nil
	SessionID int32
	Results   []Result // in the order of the response
	Dropped   []Result // not in the response; their records are to be released
}

// Context is one Fetch between its reading and its reply.
type Context struct {
	cache      *Cache
	session    *session    // of an incremental fetch, else nil
	requested  []Partition // of a full fetch
	epoch      int32       // of the request
	follower   bool
	topicIDs   bool
	wantsSlot  bool // epoch 0: a session is to be made
	partitions []Partition
}

// IsFollower tells whether a Fetch comes from a replica, and not from a consumer.
func IsFollower(req *kmsg.FetchRequest) bool { return ReplicaID(req) >= 0 }

// ReplicaID gives the node that fetches: NoNode for a consumer.
func ReplicaID(req *kmsg.FetchRequest) protocol.NodeID {
	if req.Version >= 15 { // KIP-903
		return protocol.NodeID(req.ReplicaState.ID)
	}
	return protocol.NodeID(req.ReplicaID)
}

// Decide finds what a Fetch is to read. topicName resolves a topic id ("" if it
// is unknown); it is asked for versions that name topics by id. The error is
// FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or
// FETCH_SESSION_TOPIC_ID_ERROR: the response then has that code at the top,
// session id 0 and no topics.
func (c *Cache) Decide(now time.Time, req *kmsg.FetchRequest, topicName func(protocol.TopicID) string) (*Context, error) {
	x := &Context{cache: c, epoch: req.SessionEpoch, follower: IsFollower(req), topicIDs: req.Version >= topicIDsFrom}
	if req.SessionEpoch == initialEpoch || req.SessionEpoch == finalEpoch {
		if old := c.sessions[req.SessionID]; old != nil {
			c.remove(old)
		}
		x.wantsSlot = req.SessionEpoch == initialEpoch
		x.requested = requestedPartitions(req, topicName)
		x.partitions = x.requested
		return x, nil
	}
	s := c.sessions[req.SessionID]
	switch {
	case s == nil:
		return nil, protocol.FetchSessionIDNotFound.Err()
	case s.epoch != req.SessionEpoch:
		return nil, protocol.InvalidFetchSessionEpoch.Err()
	case s.usesTopicIDs != x.topicIDs:
		return nil, protocol.FetchSessionTopicIDError.Err()
	}
	requested := requestedPartitions(req, topicName)
	s.update(req, requested)
	if s.partitions.len() == 0 || c.partitions+s.partitions.len()-s.size > c.options.MaxPartitions {
		c.remove(s)
		if s.partitions.len() > 0 {
			return nil, protocol.FetchSessionIDNotFound.Err() // the client comes back with a full fetch
		}
		x.requested, x.partitions = requested, requested
		return x, nil
	}
	c.touch(s, now)
	s.epoch = nextEpoch(s.epoch)
	x.session = s
	x.partitions = s.list(topicName)
	return x, nil
}

// requestedPartitions lists what a request names, in its order. A partition that
// is named twice is fetched once, with what is said of it last.
func requestedPartitions(req *kmsg.FetchRequest, topicName func(protocol.TopicID) string) []Partition {
	var list []Partition
	places := map[key]int{}
	for i := range req.Topics {
		topic := &req.Topics[i]
		name, id := topic.Topic, protocol.TopicID(topic.TopicID)
		if req.Version >= topicIDsFrom {
			name = topicName(id)
		} else {
			id = protocol.ZeroUUID
		}
		for j := range topic.Partitions {
			q := &topic.Partitions[j]
			p := Partition{
				TopicID: id, Topic: name, Partition: q.Partition, FetchOffset: protocol.Offset(q.FetchOffset), LogStartOffset: protocol.Offset(q.LogStartOffset),
				MaxBytes: q.PartitionMaxBytes, CurrentLeaderEpoch: epochOf(q.CurrentLeaderEpoch), LastFetchedEpoch: epochOf(q.LastFetchedEpoch),
			}
			if at, twice := places[p.key()]; twice {
				list[at] = p
				continue
			}
			places[p.key()] = len(list)
			list = append(list, p)
		}
	}
	return list
}

// epochOf reads an optional epoch: every negative number is none.
func epochOf(epoch int32) protocol.LeaderEpoch {
	return max(protocol.LeaderEpoch(epoch), protocol.NoLeaderEpoch)
}

// update takes what an incremental request says into the session.
func (s *session) update(req *kmsg.FetchRequest, requested []Partition) {
	for _, p := range requested {
		known := s.partitions.find(p.key())
		if known == nil {
			s.partitions.add(&cached{Partition: p, highWatermark: -1, logStartOffset: -1})
			continue
		}
		p.Topic = known.Topic
		known.Partition = p
	}
	for i := range req.ForgottenTopics {
		topic := &req.ForgottenTopics[i]
		id := protocol.TopicID(topic.TopicID)
		if req.Version < topicIDsFrom {
			id = protocol.ZeroUUID
		}
		for _, partition := range topic.Partitions {
			if known := s.partitions.find(keyOf(id, topic.Topic, partition)); known != nil {
				s.partitions.remove(known)
			}
		}
	}
}

// list gives the partitions in order. A topic id that was not known when it came
// into the session is looked up again.
func (s *session) list(topicName func(protocol.TopicID) string) []Partition {
	all := make([]Partition, 0, s.partitions.len())
	for p := s.partitions.first; p != nil; p = p.after {
		if p.Topic == "" && s.usesTopicIDs {
			p.Topic = topicName(p.TopicID)
		}
		all = append(all, p.Partition)
	}
	return all
}

// Partitions gives what is to be read, in order. The slice belongs to the caller.
func (x *Context) Partitions() []Partition { return x.partitions }

// Update picks what the response carries, and remembers it in the session. The
// results are those of Partitions, in the order they are to be answered.
func (x *Context) Update(now time.Time, results []Result) Reply {
	if x.session == nil {
		return x.replyInFull(now, results)
	}
	s := x.session
	if s.epoch != nextEpoch(x.epoch) { // a duplicate of the request was decided meanwhile
		return Reply{Err: protocol.InvalidFetchSessionEpoch.Err(), SessionID: s.id, Dropped: results}
	}
	reply := Reply{SessionID: s.id}
	for _, result := range results {
		known := s.partitions.find(keyOf(result.TopicID, result.Topic, result.Data.Partition))
		if known == nil || !known.changed(&result.Data) {
			reply.Dropped = append(reply.Dropped, result)
			continue
		}
		if result.Data.Records.Len() > 0 {
			s.partitions.moveToEnd(known)
		}
		reply.Results = append(reply.Results, result)
	}
	return reply
}

// replyInFull answers with everything, and makes a session if one is wanted and
// there is room.
func (x *Context) replyInFull(now time.Time, results []Result) Reply {
	reply := Reply{Results: results}
	if !x.wantsSlot {
		return reply
	}
	s := x.cache.create(now, x.follower, len(results), x.topicIDs)
	if s == nil {
		return reply
	}
	requested := make(map[key]*Partition, len(x.requested))
	for i := range x.requested {
		requested[x.requested[i].key()] = &x.requested[i]
	}
	for i := range results {
		result := &results[i]
		k := keyOf(result.TopicID, result.Topic, result.Data.Partition)
		if p := requested[k]; p != nil && s.partitions.find(k) == nil {
			s.partitions.add(&cached{Partition: *p, highWatermark: result.Data.HighWatermark, logStartOffset: result.Data.LogStartOffset})
		}
	}
	x.cache.touch(s, now)
	reply.SessionID = s.id
	return reply
}

// Throttled is the reply of a Fetch that is answered empty because of a quota:
// nothing is read, and the session stays as it is.
func (x *Context) Throttled() Reply {
	switch {
	case x.session == nil:
		return Reply{}
	case x.session.epoch != nextEpoch(x.epoch):
		return Reply{Err: protocol.InvalidFetchSessionEpoch.Err(), SessionID: x.session.id}
	}
	return Reply{SessionID: x.session.id}
}

// changed tells whether an incremental response must name the partition, and
// remembers what this one says.
func (p *cached) changed(data *wire.FetchPartition) bool {
	changed := data.Records.Len() > 0
	if p.highWatermark != data.HighWatermark {
		p.highWatermark, changed = data.HighWatermark, true
	}
	if p.logStartOffset != data.LogStartOffset {
		p.logStartOffset, changed = data.LogStartOffset, true
	}
	if data.PreferredReadReplica != protocol.NoNode {
		changed = true
	}
	if data.ErrorCode != protocol.None {
		p.highWatermark, changed = -1, true // and named again once the error is gone
	}
	return changed || data.DivergingEpoch != nil && data.DivergingEpoch.Epoch >= 0
}

// Topics groups results for the wire: those of one topic that follow each other.
func Topics(results []Result) []wire.FetchTopic {
	var topics []wire.FetchTopic
	for i := range results {
		r := &results[i]
		if n := len(topics); n > 0 && sameTopic(&topics[n-1], r) {
			topics[n-1].Partitions = append(topics[n-1].Partitions, r.Data)
			continue
		}
		topics = append(topics, wire.FetchTopic{Topic: r.Topic, TopicID: r.TopicID, Partitions: []wire.FetchPartition{r.Data}})
	}
	return topics
}

func sameTopic(topic *wire.FetchTopic, r *Result) bool {
	if !topic.TopicID.IsZero() {
		return topic.TopicID == r.TopicID
	}
	return r.TopicID.IsZero() && topic.Topic == r.Topic
}
