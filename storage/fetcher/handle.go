package fetcher

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/wire"
	"ottla/storage/replica"
)

// handle does what an answer asks for, and goes on.
func (one *fetcher) handle(now time.Time, resp kmsg.Response, frame *wire.Frame, err error) {
	stillRead := false
	if frame != nil {
		defer func() {
			if stillRead {
				frame.Abandon()
			} else {
				frame.Release()
			}
		}()
	}
	if err != nil {
		resp = nil
	}
	switch resp := resp.(type) {
	case *kmsg.FetchResponse:
		stillRead = one.handleFetch(now, resp)
	case *kmsg.ListOffsetsResponse:
		one.handleOffsets(now, resp)
	default:
		one.unanswered(now, err)
	}
	one.step(now)
}

// firstPause is the pause after the first refusal of who has not heard yet; each further one doubles it, up to maxUnheard times.
const (
	firstPause = 10 * time.Millisecond
	maxUnheard = 16
)

// unanswered pauses after a request of which nobody knows what became of it.
func (one *fetcher) unanswered(now time.Time, err error) {
	one.of.options.Logger.Debug("a leader did not answer a fetch", "leader", int32(one.leader), "error", err)
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	one.reset(one.session.id)
	one.notBefore = now.Add(one.of.options.Backoff)
}

// answer is what a fetch says of one part, with what was asked.
type answer struct {
	part  *part
	asked asked
	data  *kmsg.FetchResponseTopicPartition
}

// handleFetch tells whether a write that was given up (vfs.ErrStalled) may still read records of the response.
func (one *fetcher) handleFetch(now time.Time, resp *kmsg.FetchResponse) (stillRead bool) {
	for _, a := range one.take(now, resp) {
		stillRead = one.handlePart(now, a) || stillRead
	}
	return stillRead
}

// take advances the session and finds the parts that are answered.
func (one *fetcher) take(now time.Time, resp *kmsg.FetchResponse) []answer {
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	if code := protocol.ErrorCode(resp.ErrorCode); code != protocol.None {
		one.refused(now, code)
		return nil
	}
	one.failures, one.notBefore = 0, time.Time{}
	one.session.answered(resp.SessionID)
	var answers []answer
	for i := range resp.Topics {
		topic := &resp.Topics[i]
		for j := range topic.Partitions {
			data := &topic.Partitions[j]
			p := one.byID[partID{topic.TopicID, data.Partition}]
			if protocol.TopicID(topic.TopicID).IsZero() {
				p = one.of.assigned[protocol.TopicPartition{Topic: topic.Topic, Partition: data.Partition}]
			}
			if p != nil && p.fetcher == one && p.asked != nil {
				answers = append(answers, answer{p, *p.asked, data})
			}
		}
	}
	if one.session.epoch == 0 {
		one.reset(one.session.id)
	}
	return answers
}

// refused follows an error of the whole response. mu is held.
func (one *fetcher) refused(now time.Time, code protocol.ErrorCode) {
	id := one.session.id
	if code == protocol.FetchSessionIDNotFound {
		id = 0
	}
	one.reset(id)
	one.failures++
	switch code {
	case protocol.FetchSessionIDNotFound, protocol.InvalidFetchSessionEpoch, protocol.FetchSessionTopicIDError:
		if one.failures == 1 {
			return // a new session will do
		}
	}
	one.notBefore = now.Add(one.of.options.Backoff)
	one.of.options.Logger.Warn("a leader refuses a fetch", "leader", int32(one.leader), "error", code.String())
}

// handlePart appends, truncates or pauses one partition. stillRead as in handleFetch.
func (one *fetcher) handlePart(now time.Time, a answer) (stillRead bool) {
	p, data := a.part, a.data
	replicas := one.of.options.Replicas
	switch code := protocol.ErrorCode(data.ErrorCode); {
	case code == protocol.OffsetOutOfRange:
		one.of.mu.Lock()
		defer one.of.mu.Unlock()
		if !p.gone {
			p.state, p.leaderEnd = locating, protocol.NoOffset
			p.mark()
		}
	case code != protocol.None:
		one.pause(now, p, "the leader refuses to give records", code.Err())
	case data.DivergingEpoch.EndOffset >= 0 || data.DivergingEpoch.Epoch >= 0:
		diverging := wire.EpochEndOffset{
			Epoch: protocol.LeaderEpoch(data.DivergingEpoch.Epoch), EndOffset: protocol.Offset(data.DivergingEpoch.EndOffset),
		}
		position, err := replicas.TruncateToLeader(now, p.tp, p.topicID, p.epoch, diverging)
		one.anew(p)
		one.settle(now, p, position, err)
	default:
		position, err := replicas.AppendFromLeader(now, replica.LeaderData{
			Partition: p.tp, TopicID: p.topicID, LeaderEpoch: p.epoch, Offset: a.asked.offset, Records: data.RecordBatches,
			HighWatermark: protocol.Offset(data.HighWatermark), LogStart: protocol.Offset(data.LogStartOffset),
		})
		if len(data.RecordBatches) > 0 && one.of.options.Throttled(p.tp) {
			one.of.throttle.Copied(now, len(data.RecordBatches))
		}
		one.of.mu.Lock()
		p.answered, p.lag = true, max(0, data.HighWatermark-int64(position.Offset))
		one.of.mu.Unlock()
		one.settle(now, p, position, err)
		return protocol.CodeOf(err) == protocol.KafkaStorageError
	}
	return false
}

// anew has the leader tell all of a part again.
func (one *fetcher) anew(p *part) {
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	p.refresh()
}

// settle takes what the replica has answered.
func (one *fetcher) settle(now time.Time, p *part, position replica.FollowerPosition, err error) {
	if err != nil && protocol.CodeOf(err) != protocol.InvalidRequest {
		one.pause(now, p, "a follower cannot copy from its leader", err)
	}
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	if p.gone {
		return
	}
	p.mark()
	switch code := protocol.CodeOf(err); {
	case err == nil:
		p.state, p.position = fetching, position
	case code == protocol.KafkaStorageError:
		p.state = failed
	default:
		p.refresh()
		p.state = starting // where the log ends now, and whether it follows still, the replica is to say
	}
}

// pause lets a part wait after an error. Where one of us has not heard yet of what has changed, the other will within milliseconds:
// then it is asked again soon and ever later, for writers with acks=all wait for this follower.
func (one *fetcher) pause(now time.Time, p *part, what string, err error) {
	level, wait := slog.LevelWarn, one.of.options.Backoff
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	switch protocol.CodeOf(err) {
	case protocol.NotLeaderOrFollower, protocol.UnknownLeaderEpoch, protocol.FencedLeaderEpoch, protocol.UnknownTopicID, protocol.InconsistentTopicID,
		protocol.UnknownTopicOrPartition:
		level, wait = slog.LevelDebug, min(wait, firstPause<<p.unheard)
		p.unheard = min(p.unheard+1, maxUnheard)
	}
	one.of.options.Logger.Log(context.Background(), level, what,
		"partition", p.tp.String(), "leader", int32(one.leader), "leader epoch", int32(p.epoch), "error", err)
	if !p.gone {
		p.delay(now.Add(wait))
	}
}

// handleOffsets takes where the leader's logs end, or begin; with both the replica's log is made to fit.
func (one *fetcher) handleOffsets(now time.Time, resp *kmsg.ListOffsetsResponse) {
	for i := range resp.Topics {
		topic := &resp.Topics[i]
		for j := range topic.Partitions {
			found := &topic.Partitions[j]
			one.of.mu.Lock()
			p := one.of.assigned[protocol.TopicPartition{Topic: topic.Topic, Partition: found.Partition}]
			known := p != nil && p.fetcher == one && p.state == locating
			one.of.mu.Unlock()
			if known {
				one.located(now, p, protocol.ErrorCode(found.ErrorCode), protocol.Offset(found.Offset))
			}
		}
	}
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	one.notBefore = time.Time{}
	for _, p := range one.changed {
		if p.state == locating && p.leaderEnd == protocol.NoOffset && !now.Before(p.notBefore) {
			p.delay(now.Add(one.of.options.Backoff)) // it was not answered
		}
	}
}

func (one *fetcher) located(now time.Time, p *part, code protocol.ErrorCode, offset protocol.Offset) {
	switch {
	case code != protocol.None || offset < 0:
		one.pause(now, p, "the leader does not say where its log is", code.Err())
	case p.leaderEnd == protocol.NoOffset && offset >= p.position.Offset:
		one.of.mu.Lock()
		p.leaderEnd = offset
		p.mark()
		one.of.mu.Unlock()
	default:
		start, end := offset, p.leaderEnd
		if end == protocol.NoOffset {
			start, end = 0, offset // it ends before ours: the start does not matter
		}
		position, err := one.of.options.Replicas.FitToLeader(now, p.tp, p.topicID, p.epoch, start, end)
		one.anew(p)
		one.settle(now, p, position, err)
	}
}
