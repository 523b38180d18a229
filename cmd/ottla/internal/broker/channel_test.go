package broker

import (
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/protocol/client"
	"ottla/protocol/wire"
	"ottla/storage/partition"
)

// outgoing is what a Channel, or whoever has a Send, has sent and awaits.
type outgoing struct {
	to   raft.Address
	req  kmsg.Request
	done func(kmsg.Response, error)
}

// line is a Channel under test.
type line struct {
	*Channel
	leader *raft.Address
	sent   []outgoing
	now    time.Time
}

func newLine() *line {
	l := &line{now: time.Unix(1000, 0)}
	l.Channel = &Channel{
		Leader: func() *raft.Address { return l.leader }, Timeout: time.Second, Backoff: 50 * time.Millisecond, Wake: func() {},
		SendTo: func(to raft.Address, req kmsg.Request, done func(kmsg.Response, error)) {
			l.sent = append(l.sent, outgoing{to, req, done})
		},
	}
	return l
}

func (l *line) after(ms int) {
	l.now = l.now.Add(time.Duration(ms) * time.Millisecond)
	if due := l.NextDeadline(l.now); !due.IsZero() && !due.After(l.now) {
		l.Tick(l.now)
	}
}

func (l *line) take(t *testing.T, to protocol.NodeID) outgoing {
	t.Helper()
	if len(l.sent) != 1 || l.sent[0].to.ID != to {
		t.Fatalf("sent %+v, want one request to %d", l.sent, to)
	}
	one := l.sent[0]
	l.sent = nil
	return one
}

func TestChannelFindsTheController(t *testing.T) {
	l := newLine()
	var got kmsg.Response
	l.Send(kmsg.NewPtrAllocateProducerIDsRequest(), func(resp kmsg.Response, err error) {
		if err != nil {
			t.Error(err)
		}
		got = resp
	})
	l.after(0)
	if len(l.sent) != 0 {
		t.Fatal("sent though nobody leads")
	}
	l.leader = &raft.Address{ID: 1001}
	l.after(60)
	l.take(t, 1001).done(nil, client.ErrDisconnected)
	l.after(0)
	if len(l.sent) != 0 {
		t.Fatal("sent again without a pause")
	}
	l.after(60)
	refused := kmsg.NewPtrAllocateProducerIDsResponse()
	refused.ErrorCode = int16(protocol.NotController)
	l.take(t, 1001).done(refused, nil)
	l.leader = &raft.Address{ID: 1002}
	l.after(0)
	l.after(60)
	answer := kmsg.NewPtrAllocateProducerIDsResponse()
	l.take(t, 1002).done(answer, nil)
	if got != answer {
		t.Fatalf("answered with %v", got)
	}
	if due := l.NextDeadline(l.now); !due.IsZero() {
		t.Errorf("due at %v with nothing to do", due)
	}
}

// TestChannelLeavesWhoHangs: whoever does not answer and leads no more is not waited
// for, and what it says later is not heard.
func TestChannelLeavesWhoHangs(t *testing.T) {
	l := newLine()
	l.Timeout, l.leader = 10*time.Second, &raft.Address{ID: 1001}
	answers := 0
	l.Send(kmsg.NewPtrCreateTopicsRequest(), func(kmsg.Response, error) { answers++ })
	l.after(0)
	hangs := l.take(t, 1001)
	l.after(600)
	if len(l.sent) != 0 {
		t.Fatal("sent again to the one that leads")
	}
	l.leader = &raft.Address{ID: 1002}
	l.after(300)
	l.after(300)
	next := l.take(t, 1002)
	hangs.done(kmsg.NewPtrCreateTopicsResponse(), nil)
	if answers != 0 {
		t.Fatal("the former leader was heard")
	}
	next.done(kmsg.NewPtrCreateTopicsResponse(), nil)
	if due := l.NextDeadline(l.now); answers != 1 || !due.IsZero() {
		t.Fatalf("%d answers, due at %v", answers, due)
	}
}

func TestChannelGivesUp(t *testing.T) {
	l := newLine()
	var failures []error
	failed := func(_ kmsg.Response, err error) { failures = append(failures, err) }
	l.Send(kmsg.NewPtrCreateTopicsRequest(), failed)
	l.after(0)
	l.after(1100)
	if len(failures) != 1 || !errors.Is(failures[0], client.ErrTimeout) {
		t.Fatalf("with nobody to ask: %v", failures)
	}
	l.leader = &raft.Address{ID: 1001}
	l.Send(kmsg.NewPtrCreateTopicsRequest(), failed)
	l.after(0)
	l.take(t, 1001).done(nil, protocol.UnsupportedVersion.Err())
	if len(failures) != 2 || protocol.CodeOf(failures[1]) != protocol.UnsupportedVersion {
		t.Fatalf("a refusal: %v", failures)
	}
	l.Send(kmsg.NewPtrCreateTopicsRequest(), failed)
	l.after(0)
	l.take(t, 1001).done(nil, client.ErrDisconnected)
	l.after(0)
	l.after(1100)
	if len(failures) != 3 || !errors.Is(failures[2], client.ErrTimeout) || !errors.Is(failures[2], client.ErrDisconnected) {
		t.Fatalf("one that was lost: %v", failures)
	}
}

func TestEnvelope(t *testing.T) {
	var sent *kmsg.EnvelopeRequest
	var answer func(kmsg.Response, error)
	send := Enveloped(Sender{Principal: "User:alice", Host: "10.0.0.7", ClientID: "app"}, func(req kmsg.Request, done func(kmsg.Response, error)) {
		sent, answer = req.(*kmsg.EnvelopeRequest), done
	})
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 7, 1234
	var got kmsg.Response
	var failure error
	send(req, func(resp kmsg.Response, err error) { got, failure = resp, err })
	header, body, err := wire.ReadRequestHeader(sent.RequestData)
	if err != nil || header.Key != protocol.CreateTopics || header.Version != 7 || *header.ClientID != "app" {
		t.Fatalf("the envelope holds %+v, %v", header, err)
	}
	if inner, err := wire.DecodeRequest(header, body); err != nil || inner.(*kmsg.CreateTopicsRequest).TimeoutMillis != 1234 {
		t.Fatalf("the envelope holds %v, %v", inner, err)
	}
	if string(sent.ClientHostAddress) != "\x0a\x00\x00\x07" {
		t.Errorf("the address is %x", sent.ClientHostAddress)
	}
	inner := kmsg.NewPtrCreateTopicsResponse()
	inner.Version, inner.ThrottleMillis = 7, 55
	reply := kmsg.NewPtrEnvelopeResponse()
	reply.ResponseData = wire.AppendResponse(nil, 0, inner)[wire.LengthBytes:]
	answer(reply, nil)
	if failure != nil || got.(*kmsg.CreateTopicsResponse).ThrottleMillis != 55 {
		t.Fatalf("answered with %v, %v", got, failure)
	}
	for code, want := range map[protocol.ErrorCode]protocol.ErrorCode{
		protocol.ClusterAuthorizationFailed: protocol.UnknownServerError, protocol.UnsupportedVersion: protocol.UnsupportedVersion,
	} {
		reply := kmsg.NewPtrEnvelopeResponse()
		reply.ErrorCode = int16(code)
		answer(reply, nil)
		if protocol.CodeOf(failure) != want {
			t.Errorf("an envelope refused with %s: %v", code, failure)
		}
	}
	reply = kmsg.NewPtrEnvelopeResponse()
	reply.ResponseData = []byte{1, 2, 3}
	if answer(reply, nil); failure == nil {
		t.Error("an answer of three bytes was taken")
	}
}

// TestPrincipals: the bytes are those of DefaultKafkaPrincipalBuilder.serialize of
// Apache Kafka 4.4.0.
func TestPrincipals(t *testing.T) {
	for principal, want := range map[string]string{
		"User:ANONYMOUS": "000005557365720a414e4f4e594d4f55530000",
		"User:alice":     "0000055573657206616c6963650000",
		"User:ünï:code":  "000005557365720bc3bc6ec3af3a636f64650000",
	} {
		if got := hex.EncodeToString(principalBytes(principal)); got != want {
			t.Errorf("%s is %s, want %s", principal, got, want)
		}
	}
	for host, want := range map[string]string{"127.0.0.1": "7f000001", "::1": "00000000000000000000000000000001", "pipe": "7f000001", "fe80::1%eth0": "fe800000000000000000000000000001"} {
		if got := hex.EncodeToString(addressBytes(host)); got != want {
			t.Errorf("%s is %s, want %s", host, got, want)
		}
	}
}

// TestISRChanges: one request at a time; a wish made meanwhile goes with the next; a
// request that failed as a whole is sent again, a refused wish is told.
func TestISRChanges(t *testing.T) {
	var sent []outgoing
	now := time.Unix(1000, 0)
	c := &ISRChanges{
		NodeID: 1, Epoch: func() protocol.BrokerEpoch { return 40 }, Image: metadata.Empty, Wake: func() {},
		Send: func(req kmsg.Request, done func(kmsg.Response, error)) {
			sent = append(sent, outgoing{req: req, done: done})
		},
	}
	tick := func(ms int) {
		now = now.Add(time.Duration(ms) * time.Millisecond)
		if due := c.NextDeadline(now); !due.IsZero() && !due.After(now) {
			c.Tick(now)
		}
	}
	topic := protocol.TopicID{7}
	told := map[int32][]protocol.ErrorCode{}
	ask := func(n int32) {
		wish := &partition.AlterPartition{TopicID: topic, LeaderEpoch: 3, PartitionEpoch: 5, ISR: []partition.ISRMember{{ID: 1, BrokerEpoch: -1}, {ID: 2, BrokerEpoch: 44}}}
		c.Ask(protocol.TopicPartition{Topic: "t", Partition: n}, wish, func(_ time.Time, result partition.AlterResult) {
			told[n] = append(told[n], result.Error)
		})
	}
	ask(0)
	tick(0)
	ask(2)
	ask(1)
	tick(0)
	if len(sent) != 1 {
		t.Fatalf("%d requests are on their way", len(sent))
	}
	first := sent[0].req.(*kmsg.AlterPartitionRequest)
	if p := first.Topics[0].Partitions[0]; first.BrokerEpoch != 40 || p.NewEpochISR[0].BrokerEpoch != 40 || p.NewEpochISR[1].BrokerEpoch != 44 {
		t.Fatalf("sent %+v", first)
	}
	sent[0].done(nil, client.ErrDisconnected)
	tick(0)
	if len(sent) != 1 {
		t.Fatal("sent again without a pause")
	}
	tick(60)
	if len(sent) != 2 || len(sent[1].req.(*kmsg.AlterPartitionRequest).Topics[0].Partitions) != 3 {
		t.Fatalf("sent %+v", sent)
	}
	resp := kmsg.NewPtrAlterPartitionResponse()
	answered := kmsg.NewAlterPartitionResponseTopic()
	answered.TopidID = topic
	for n, code := range []protocol.ErrorCode{protocol.None, protocol.InvalidUpdateVersion} {
		p := kmsg.NewAlterPartitionResponseTopicPartition()
		p.Partition, p.ErrorCode = int32(n), int16(code)
		answered.Partitions = append(answered.Partitions, p)
	}
	resp.Topics = append(resp.Topics, answered)
	sent[1].done(resp, nil)
	tick(0)
	for n, want := range []protocol.ErrorCode{protocol.None, protocol.InvalidUpdateVersion, protocol.UnknownServerError} {
		if got := told[int32(n)]; len(got) != 1 || got[0] != want {
			t.Errorf("partition %d was told %v, want %s", n, got, want)
		}
	}
	if failed := c.Failed.Load(); failed != 2 {
		t.Errorf("%d were counted as refused", failed)
	}
	wish := &partition.AlterPartition{ISR: make([]partition.ISRMember, 2)}
	for _, before := range []int{1, 2, 3, 3} {
		c.count(isrWish{wish: wish, before: before}, protocol.None)
	}
	if shrinks, expands := c.Shrinks.Load(), c.Expands.Load(); shrinks != 2 || expands != 1 {
		t.Errorf("%d shrinks and %d expands were counted", shrinks, expands)
	}
}
