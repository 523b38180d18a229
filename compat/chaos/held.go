package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
)

// Late is what a late request did to the transaction that had begun meanwhile.
type Late struct {
	Name  string
	Code  string // the answer to the late request
	Ended bool   // the transaction that was under way was ended by it
	Shown bool   // something that was aborted is visible to readers of committed data
	Hangs bool   // the last stable offset does not reach the end
}

// heldLimit is how long markers may take, on a busy machine.
const heldLimit = 30 * time.Second

// Sound tells whether it did nothing.
func (l Late) Sound() bool { return !l.Ended && !l.Shown && !l.Hangs }

// Worse tells whether it did something that the other one did not.
func (l Late) Worse(o Late) bool {
	return l.Ended && !o.Ended || l.Shown && !o.Shown || l.Hangs && !o.Hangs
}

// holder is a producer that speaks raw requests, some of which come late.
type holder struct {
	second       bool
	proxy        *Proxy
	late, direct *kgo.Client
	topic        string
	topicID      [16]byte
	id           string
	producer     int64
	epoch        int16
	sequence     int32
	pool         *compress.Pool
}

// HoldRequests lets requests of a producer, of transactions v2 (KIP-890) or v1, come
// past the next transaction.
func HoldRequests(ctx context.Context, addr string, second bool) ([]Late, error) {
	var all []Late
	for _, story := range []struct {
		name string
		tell func(context.Context, *holder) (Late, error)
	}{
		{"EndTxn commits, late into the next transaction", func(ctx context.Context, h *holder) (Late, error) { return h.lateEnd(ctx, true) }},
		{"EndTxn aborts, late into the next transaction", func(ctx context.Context, h *holder) (Late, error) { return h.lateEnd(ctx, false) }},
		{"Produce, late after the abort", func(ctx context.Context, h *holder) (Late, error) { return h.lateProduce(ctx, false) }},
		{"Produce, late into the next transaction", func(ctx context.Context, h *holder) (Late, error) { return h.lateProduce(ctx, true) }},
	} {
		h, err := newHolder(ctx, addr, second, fmt.Sprintf("held-%t-%d", second, len(all)))
		if err != nil {
			return nil, err
		}
		late, err := story.tell(ctx, h)
		h.close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", story.name, err)
		}
		late.Name = story.name
		all = append(all, late)
	}
	return all, nil
}

func newHolder(ctx context.Context, addr string, second bool, name string) (*holder, error) {
	proxy, err := NewProxy(addr)
	if err != nil {
		return nil, err
	}
	h := &holder{second: second, proxy: proxy, topic: name, id: name, pool: compress.NewPool()}
	versions := kversion.Stable()
	if !second {
		versions.SetMaxKeyVersion(26, 4)
		versions.SetMaxKeyVersion(0, 11)
	}
	if h.late, err = kgo.NewClient(kgo.SeedBrokers(proxy.Addr()), kgo.MaxVersions(versions)); err != nil {
		return nil, err
	}
	if h.direct, err = kgo.NewClient(kgo.SeedBrokers(addr), kgo.MaxVersions(versions)); err != nil {
		return nil, err
	}
	made, err := kadm.NewClient(h.direct).CreateTopic(ctx, 1, 1, nil, name)
	if err != nil {
		return nil, err
	}
	h.topicID = made.ID
	return h, h.init(ctx)
}

func (h *holder) close() {
	h.late.Close()
	h.direct.Close()
	h.proxy.Close()
}

// try sends a request until its code is none or one that trying again does not change.
func try(ctx context.Context, send func() (int16, error)) error {
	for {
		code, err := send()
		switch {
		case err != nil:
			return err
		case code == 0:
			return nil
		}
		failed := kerr.ErrorForCode(code)
		if !kerr.IsRetriable(failed) && !errors.Is(failed, kerr.ConcurrentTransactions) {
			return failed
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

func (h *holder) init(ctx context.Context) error {
	return try(ctx, func() (int16, error) {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &h.id, 60000, -1, -1
		resp, err := req.RequestWith(ctx, h.direct)
		if err != nil {
			return 0, err
		}
		h.producer, h.epoch, h.sequence = resp.ProducerID, resp.ProducerEpoch, 0
		return resp.ErrorCode, nil
	})
}

// add makes the partition part of the transaction, where clients do that.
func (h *holder) add(ctx context.Context) error {
	if h.second {
		return nil
	}
	return try(ctx, func() (int16, error) {
		req := kmsg.NewPtrAddPartitionsToTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch = h.id, h.producer, h.epoch
		topic := kmsg.NewAddPartitionsToTxnRequestTopic()
		topic.Topic, topic.Partitions = h.topic, []int32{0}
		req.Topics = append(req.Topics, topic)
		resp, err := req.RequestWith(ctx, h.direct)
		if err != nil {
			return 0, err
		}
		return resp.Topics[0].Partitions[0].ErrorCode, nil
	})
}

// batch is a Produce of one record; each takes the next sequence.
func (h *holder) batch(value string) *kmsg.ProduceRequest {
	options := record.PlainOptions()
	options.ProducerID, options.ProducerEpoch, options.BaseSequence = protocol.ProducerID(h.producer), protocol.ProducerEpoch(h.epoch), h.sequence
	options.Transactional = true
	h.sequence++
	builder := record.NewBuilder(options)
	builder.Append(time.Now().UnixMilli(), nil, []byte(value), nil)
	req := kmsg.NewPtrProduceRequest()
	req.TransactionID, req.Acks, req.TimeoutMillis = &h.id, -1, 10000
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID = h.topic, h.topicID
	part := kmsg.NewProduceRequestTopicPartition()
	part.Records = builder.Build(h.pool)
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	return req
}

func produce(ctx context.Context, client *kgo.Client, req *kmsg.ProduceRequest) (int16, error) {
	resp, err := client.SeedBrokers()[0].Request(ctx, req)
	if err != nil {
		return 0, err
	}
	return resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode, nil
}

func (h *holder) write(ctx context.Context, value string) error {
	req := h.batch(value)
	return try(ctx, func() (int16, error) { return produce(ctx, h.direct, req) })
}

func (h *holder) endRequest(commit bool) *kmsg.EndTxnRequest {
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = h.id, h.producer, h.epoch, commit
	return req
}

// end ends the transaction and takes the epoch that the answer brings.
func (h *holder) end(ctx context.Context, commit bool) error {
	return try(ctx, func() (int16, error) {
		resp, err := h.endRequest(commit).RequestWith(ctx, h.direct)
		if err != nil {
			return 0, err
		}
		if h.second && resp.ErrorCode == 0 {
			h.producer, h.epoch, h.sequence = resp.ProducerID, resp.ProducerEpoch, 0
		}
		return resp.ErrorCode, nil
	})
}

// hold sends a request that is held, and gives what lets it go and waits for its answer.
func (h *holder) hold(ctx context.Context, key int16, send func(client *kgo.Client) (int16, error)) (release func() (string, error), err error) {
	held := h.proxy.HoldNext(func(k, _ int16) bool { return k == key })
	type answer struct {
		code int16
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		code, err := send(h.late)
		answered <- answer{code, err}
	}()
	select {
	case <-held.Arrived():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return func() (string, error) {
		held.Release()
		a := <-answered
		if a.err != nil {
			return "", a.err
		}
		if a.code == 0 {
			return "none", nil
		}
		return kerr.ErrorForCode(a.code).(*kerr.Error).Message, nil
	}, nil
}

// lateEnd is an EndTxn that the producer has sent once more, and that comes when the
// next transaction is under way.
func (h *holder) lateEnd(ctx context.Context, commit bool) (late Late, err error) {
	if err := errors.Join(h.add(ctx), h.write(ctx, "first")); err != nil {
		return late, err
	}
	req := h.endRequest(commit)
	release, err := h.hold(ctx, req.Key(), func(client *kgo.Client) (int16, error) {
		resp, err := client.SeedBrokers()[0].Request(ctx, req)
		if err != nil {
			return 0, err
		}
		return resp.(*kmsg.EndTxnResponse).ErrorCode, nil
	})
	if err != nil {
		return late, err
	}
	if err := errors.Join(h.end(ctx, commit), h.add(ctx), h.write(ctx, "second")); err != nil {
		return late, err
	}
	if late.Code, err = release(); err != nil {
		return late, err
	}
	return late, h.judge(ctx, &late, true)
}

// lateProduce is a Produce that comes when its transaction was aborted.
func (h *holder) lateProduce(ctx context.Context, into bool) (late Late, err error) {
	if err := errors.Join(h.add(ctx), h.write(ctx, "first")); err != nil {
		return late, err
	}
	req := h.batch("late")
	release, err := h.hold(ctx, req.Key(), func(client *kgo.Client) (int16, error) { return produce(ctx, client, req) })
	if err != nil {
		return late, err
	}
	if err := h.end(ctx, false); err != nil {
		return late, err
	}
	if into {
		if err := h.add(ctx); err != nil {
			return late, err
		}
		if h.second { // v1's next batch would follow the late one
			if err := h.write(ctx, "second"); err != nil {
				return late, err
			}
		}
	}
	if late.Code, err = release(); err != nil {
		return late, err
	}
	if into && !h.second {
		if err := h.end(ctx, false); err != nil {
			return late, err
		}
	}
	return late, h.judge(ctx, &late, into && h.second)
}

// judge looks what is left: under way tells that a transaction is, which is aborted then.
func (h *holder) judge(ctx context.Context, late *Late, underWay bool) error {
	if underWay {
		// The late request was answered: what it did to the transaction the coordinator knows, before any marker is written.
		described, err := kadm.NewClient(h.direct).DescribeTransactions(ctx, h.id)
		if err != nil {
			return err
		}
		transaction, err := described.On(h.id, nil)
		if err := cmp.Or(err, transaction.Err); err != nil {
			return err
		}
		late.Ended = transaction.State != "Ongoing"
		err = h.end(ctx, false)
		if failed := (*kerr.Error)(nil); err != nil && !errors.As(err, &failed) {
			return err
		}
	}
	for began := time.Now(); ; {
		stable, high, err := h.ends(ctx)
		if err != nil {
			return err
		}
		if stable == high {
			break
		}
		if time.Since(began) > heldLimit {
			late.Hangs = true
			break
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return h.look(ctx, late)
}

func (h *holder) ends(ctx context.Context) (stable, high int64, err error) {
	admin := kadm.NewClient(h.direct)
	s, err := admin.ListCommittedOffsets(ctx, h.topic)
	if err != nil {
		return 0, 0, err
	}
	e, err := admin.ListEndOffsets(ctx, h.topic)
	if err != nil {
		return 0, 0, err
	}
	one, _ := s.Lookup(h.topic, 0)
	other, _ := e.Lookup(h.topic, 0)
	return one.Offset, other.Offset, errors.Join(one.Err, other.Err)
}

// look reads what is committed: nothing but "first" may be.
func (h *holder) look(ctx context.Context, late *Late) error {
	stable, _, err := h.ends(ctx)
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(h.direct.OptValue(kgo.SeedBrokers).([]string)...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{h.topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return err
	}
	defer client.Close()
	for at := int64(0); at < stable; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			at = r.Offset + 1
			late.Shown = late.Shown || !r.Attrs.IsControl() && string(r.Value) != "first"
		})
	}
	return nil
}
