package sim

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/record"

	"ottla/cmd/ottla/internal/seeded"
)

// fetch sends the next Fetch.
func (c *consumer) fetch() {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID = -1
	if c.s.phase != working { // what is left is read, not waited for
		c.plan.minBytes, c.plan.maxBytes, c.plan.partBytes, c.plan.pace = 1, 1<<20, 1<<20, 2*time.Millisecond
	}
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = int32(c.plan.maxWait.Milliseconds()), c.plan.minBytes, c.plan.maxBytes
	if c.plan.committed {
		req.IsolationLevel = 1
	}
	sessions := c.plan.sessions && c.plan.version >= 7
	req.SessionID, req.SessionEpoch = 0, -1
	if sessions {
		req.SessionID, req.SessionEpoch = c.session, c.epoch
	}
	asked := append([]*cursor{}, c.cursors...)
	seeded.Shuffle(c.random, asked)
	for _, p := range asked {
		now := cursorPosition{p.offset, p.lastEpoch, p.leaderEpoch, c.plan.partBytes}
		if sessions && c.epoch > 0 && p.inSession && p.sent == now {
			continue
		}
		p.inSession, p.sent = true, now
		c.addTo(req, p)
	}
	c.fetching = true
	conn := c.conn
	conn.send(req, c.plan.version, c.plan.maxWait+15*time.Second, true, func(resp kmsg.Response, err error) {
		if conn == c.conn {
			c.fetching = false
		}
		if err == nil {
			c.fetched(resp.(*kmsg.FetchResponse), conn.incarnation)
		}
	})
}

func (c *consumer) addTo(req *kmsg.FetchRequest, p *cursor) {
	part := kmsg.NewFetchRequestTopicPartition()
	part.Partition, part.FetchOffset, part.PartitionMaxBytes = p.n, int64(p.offset), p.sent.maxBytes
	part.CurrentLeaderEpoch, part.LastFetchedEpoch, part.LogStartOffset = int32(p.leaderEpoch), int32(p.lastEpoch), -1
	for i := range req.Topics {
		if req.Topics[i].TopicID == p.topic.id {
			req.Topics[i].Partitions = append(req.Topics[i].Partitions, part)
			return
		}
	}
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = p.topic.name, p.topic.id
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
}

func (c *consumer) fetched(resp *kmsg.FetchResponse, incarnation int) {
	switch code := protocol.ErrorCode(resp.ErrorCode); code {
	case protocol.None:
	case protocol.FetchSessionIDNotFound, protocol.InvalidFetchSessionEpoch:
		c.s.Linef("%s: %s", c.name, code)
		if c.epoch == 0 || !c.plan.sessions {
			c.s.Violate("%s: a full fetch gave %s", c.name, code)
		}
		c.endSession()
		return
	default:
		c.s.Violate("%s: fetch gave %s", c.name, code)
		return
	}
	c.keepSession(resp)
	bytes, batches := 0, 0
	for i := range resp.Topics {
		topic := &resp.Topics[i]
		for j := range topic.Partitions {
			part := &topic.Partitions[j]
			p := c.find(topic, part.Partition)
			if p == nil {
				continue // forgotten meanwhile
			}
			count := c.fetchedPart(p, part, incarnation)
			if c.s.Failure != nil {
				return
			}
			if len(part.RecordBatches) > int(p.sent.maxBytes) && count > 1 {
				c.s.Violate("%s: %d bytes in %d batches of %s, asked for at most %d", c.name, len(part.RecordBatches), count, p.part(), p.sent.maxBytes)
			}
			bytes, batches = bytes+len(part.RecordBatches), batches+count
		}
	}
	if bytes > int(c.plan.maxBytes) && batches > 1 {
		c.s.Violate("%s: %d bytes in %d batches, asked for at most %d", c.name, bytes, batches, c.plan.maxBytes)
	}
}

func (c *consumer) keepSession(resp *kmsg.FetchResponse) {
	switch {
	case !c.plan.sessions || c.plan.version < 7:
	case resp.SessionID == 0: // the node keeps none for us
		c.endSession()
	case c.epoch > 0 && resp.SessionID != c.session:
		c.s.Violate("%s: session %d became %d", c.name, c.session, resp.SessionID)
	default:
		c.session, c.epoch = resp.SessionID, c.epoch+1
	}
}

func (c *consumer) find(topic *kmsg.FetchResponseTopic, n int32) *cursor {
	for _, p := range c.cursors {
		if p.n == n && (c.plan.version >= 13 && p.topic.id == topic.TopicID || c.plan.version < 13 && p.topic.name == topic.Topic) {
			return p
		}
	}
	return nil
}

// fetchedPart takes one partition's part and counts its batches.
func (c *consumer) fetchedPart(p *cursor, part *kmsg.FetchResponseTopicPartition, incarnation int) (batches int) {
	if p.offset != p.sent.offset {
		return 0 // placed anew meanwhile
	}
	model := p.part()
	cut := p.wasCut(incarnation)
	switch code := protocol.ErrorCode(part.ErrorCode); {
	case code == protocol.OffsetOutOfRange:
		c.s.Linef("%s: offset %d of %s is out of range", c.name, p.offset, model)
		if p.offset >= model.maxStart && !cut && !model.cutPending {
			c.s.Violate("%s: offset %d of %s is out of range, and was not; it is %+v", c.name, p.offset, model, model.seen)
		}
		p.offset, p.lookup, p.lastEpoch, p.cut = protocol.NoOffset, -2, protocol.NoLeaderEpoch, false
		return 0
	case code != protocol.None:
		c.excuse(code, "fetch", model)
		c.stale = true
		return 0
	case part.DivergingEpoch.EndOffset >= 0:
		c.diverged(p, part, cut)
		return 0
	}
	if part.HighWatermark > int64(model.seen.end) && incarnation == model.seen.incarnation || part.LastStableOffset > part.HighWatermark {
		c.s.Violate("%s: %s: high watermark %d, last stable offset %d, and %+v", c.name, model, part.HighWatermark, part.LastStableOffset, model.seen)
	}
	if len(part.RecordBatches) == 0 {
		return 0
	}
	// Where the log starts just there nobody can tell: what was before is deleted anyhow.
	if cut && c.plan.version >= 12 && p.lastEpoch != protocol.NoLeaderEpoch && part.LogStartOffset < int64(p.offset) {
		c.s.Violate("%s: offset %d of %s was taken by a power cut, and the fetch (last epoch %d) was not told", c.name, p.offset, model, p.lastEpoch)
	}
	p.cut = false
	return c.records(p, part, incarnation)
}

// wasCut tells that a power cut took what lies before the cursor. It stays so until
// the cursor is placed anew, or reads on.
func (p *cursor) wasCut(incarnation int) bool {
	model := p.part()
	known := model.cutsBy(incarnation)
	for i := p.cuts; i < known; i++ {
		p.cut = p.cut || model.cuts[i].end < p.offset
	}
	p.cuts = max(p.cuts, known)
	return p.cut
}

func (c *consumer) diverged(p *cursor, part *kmsg.FetchResponseTopicPartition, cut bool) {
	c.s.Linef("%s: %s diverges: %+v", c.name, p.part(), part.DivergingEpoch)
	if !cut {
		c.s.Violate("%s: %s diverges from offset %d, epoch %d: %+v, and no power cut took anything", c.name, p.part(), p.offset, p.lastEpoch, part.DivergingEpoch)
	}
	if part.DivergingEpoch.EndOffset >= int64(p.offset) {
		c.s.Violate("%s: %s: diverging at %d, asked was %d", c.name, p.part(), part.DivergingEpoch.EndOffset, p.offset)
	}
	p.offset, p.lastEpoch, p.cut = protocol.Offset(part.DivergingEpoch.EndOffset), protocol.LeaderEpoch(part.DivergingEpoch.Epoch), false
}

// records takes the batches of a partition: they follow the cursor without a gap.
func (c *consumer) records(p *cursor, part *kmsg.FetchResponseTopicPartition, incarnation int) (batches int) {
	for rest := part.RecordBatches; len(rest) > 0; batches++ {
		batch, after, err := record.Next(rest)
		if err == nil {
			err = batch.CheckCRC()
		}
		if err != nil {
			c.s.Violate("%s: %s: what was fetched at %d is no batch: %v", c.name, p.part(), p.offset, err)
			return batches
		}
		rest = after
		if batch.BaseOffset() > p.offset || batch.LastOffset() < p.offset || int64(batch.LastOffset()) >= part.HighWatermark {
			c.s.Violate("%s: %s: at offset %d came a batch of %d to %d, high watermark %d", c.name, p.part(), p.offset, batch.BaseOffset(), batch.LastOffset(), part.HighWatermark)
			return batches
		}
		for r, err := range record.Records(batch, c.s.model.pool, 1<<24) {
			if err != nil {
				c.s.Violate("%s: %s: a batch at %d cannot be read: %v", c.name, p.part(), p.offset, err)
				return batches
			}
			if r.Offset < p.offset {
				continue
			}
			c.s.counts.Read++
			c.s.model.read(p.part(), r, batch, incarnation)
			if c.s.Failure != nil {
				return batches
			}
			p.offset = r.Offset + 1
		}
		p.lastEpoch = batch.PartitionLeaderEpoch()
	}
	return batches
}
