package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/controller/txn"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// errLost is what a request gets that the network lost.
var errLost = errors.New("lost")

// sent is a request on its way to a broker.
type sent struct {
	to   protocol.NodeID
	req  kmsg.Request
	done func(kmsg.Response, error)
}

// markerBench is Markers with brokers 1 to 3, of which 1 is this one.
type markerBench struct {
	t       *testing.T
	image   *metadata.Image
	offset  protocol.Offset
	markers *Markers
	now     time.Time
	sent    []sent
	reports []txn.MarkersWritten
	refuse  error // what reports get
	drawn   int
	drawErr error
	events  []any
}

func newMarkerBench(t *testing.T) *markerBench {
	b := &markerBench{t: t, now: now, image: metadata.Empty()}
	b.markers = NewMarkers(MarkersOptions{
		NodeID: 1, Image: func() *metadata.Image { return b.image }, Wake: func() {}, Logger: slog.New(slog.DiscardHandler),
		SendTo: func(to protocol.NodeID, req kmsg.Request, done func(kmsg.Response, error)) {
			b.sent = append(b.sent, sent{to, req, done})
		},
		Submit: func(_ time.Time, _ int32, request any, done func(any, error)) {
			if report, ok := request.(txn.MarkersWritten); ok {
				if b.refuse != nil {
					done(nil, b.refuse)
					return
				}
				b.reports = append(b.reports, report)
			} else {
				b.events = append(b.events, request)
			}
			done(txn.Done{}, nil)
		},
		ProducerID: func(done func(protocol.ProducerID, error)) {
			b.drawn++
			done(protocol.ProducerID(b.drawn), b.drawErr)
		},
	})
	records := []schema.MetadataRecord{topic(protocol.TransactionStateTopic, 1), partitionOf(1, 0, 1), partitionOf(1, 1, 1), topic("t", 2)}
	for id := range protocol.NodeID(3) {
		r := schema.NewRegisterBrokerRecord()
		r.BrokerID, r.Fenced = id+1, false
		records = append(records, r)
	}
	for n := range int32(4) {
		records = append(records, partitionOf(2, n, protocol.NodeID(1+n%3)))
	}
	b.publish(records...)
	return b
}

func (b *markerBench) publish(records ...schema.MetadataRecord) {
	b.t.Helper()
	delta := metadata.NewDelta(b.image)
	for _, r := range records {
		b.offset++
		if err := delta.Replay(b.offset, 1, r); err != nil {
			b.t.Fatal(err)
		}
	}
	b.image = delta.Build(metadata.Provenance{Offset: b.offset, Epoch: 1})
}

// tick ticks as long as something is due.
func (b *markerBench) tick() {
	b.t.Helper()
	for i := 0; ; i++ {
		due := b.markers.NextDeadline(b.now)
		if due.IsZero() || due.After(b.now) {
			return
		}
		if i > 100 {
			b.t.Fatal("something is due for ever")
		}
		b.markers.Tick(b.now)
	}
}

func (b *markerBench) pass(d time.Duration) {
	b.now = b.now.Add(d)
	b.tick()
}

func parts(numbers ...int32) (all []protocol.TopicPartition) {
	for _, n := range numbers {
		all = append(all, protocol.TopicPartition{Topic: "t", Partition: n})
	}
	return all
}

func (b *markerBench) write(id string, producer protocol.ProducerID, coordinator int32, numbers ...int32) {
	b.markers.Carry(0, txn.WriteMarkers{
		TransactionalID: id, Producer: txn.Producer{ID: producer, Epoch: 5}, CoordinatorEpoch: coordinator, Commit: true, Version: 2, Partitions: parts(numbers...),
	})
	b.tick()
}

// show prints what is on its way.
func (b *markerBench) show() string {
	var lines []string
	for _, s := range b.sent {
		text := fmt.Sprintf("to %d:", s.to)
		for _, m := range s.req.(*kmsg.WriteTxnMarkersRequest).Markers {
			text += fmt.Sprintf(" %d/%d commit=%t by %d v%d", m.ProducerID, m.ProducerEpoch, m.Committed, m.CoordinatorEpoch, m.TransactionVersion)
			for _, topic := range m.Topics {
				text += fmt.Sprintf(" %s%v", topic.Topic, topic.Partitions)
			}
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}

func (b *markerBench) expect(want string) {
	b.t.Helper()
	if got := b.show(); got != want {
		b.t.Fatalf("on their way:\n%s\nnot:\n%s", got, want)
	}
}

// answer answers the oldest request; codes are by partition, NONE if not named.
func (b *markerBench) answer(codes map[int32]protocol.ErrorCode) {
	b.t.Helper()
	one := b.sent[0]
	b.sent = b.sent[1:]
	resp := kmsg.NewPtrWriteTxnMarkersResponse()
	for _, m := range one.req.(*kmsg.WriteTxnMarkersRequest).Markers {
		answer := kmsg.WriteTxnMarkersResponseMarker{ProducerID: m.ProducerID}
		for _, topic := range m.Topics {
			of := kmsg.WriteTxnMarkersResponseMarkerTopic{Topic: topic.Topic}
			for _, n := range topic.Partitions {
				of.Partitions = append(of.Partitions, kmsg.WriteTxnMarkersResponseMarkerTopicPartition{Partition: n, ErrorCode: int16(codes[n])})
			}
			answer.Topics = append(answer.Topics, of)
		}
		resp.Markers = append(resp.Markers, answer)
	}
	one.done(resp, nil)
	b.tick()
}

func (b *markerBench) reported(want ...string) {
	b.t.Helper()
	var got []string
	for _, r := range b.reports {
		got = append(got, fmt.Sprintf("%s %v", r.TransactionalID, r.Partitions))
	}
	if !slices.Equal(got, want) {
		b.t.Fatalf("reported %q, not %q", got, want)
	}
}

// Markers go to the leaders, each transaction's to each at once; a broker has one
// request at a time, and what comes meanwhile shares the next.
func TestMarkersGoToLeaders(t *testing.T) {
	b := newMarkerBench(t)
	b.write("a", 10, 0, 0, 1, 3)
	b.expect("to 1: 10/5 commit=true by 0 v2 t[0 3]\nto 2: 10/5 commit=true by 0 v2 t[1]")
	b.write("b", 11, 0, 0)
	b.write("c", 12, 0, 0, 2)
	b.expect("to 1: 10/5 commit=true by 0 v2 t[0 3]\nto 2: 10/5 commit=true by 0 v2 t[1]\nto 3: 12/5 commit=true by 0 v2 t[2]")
	b.answer(nil)
	b.expect("to 2: 10/5 commit=true by 0 v2 t[1]\nto 3: 12/5 commit=true by 0 v2 t[2]\nto 1: 11/5 commit=true by 0 v2 t[0] 12/5 commit=true by 0 v2 t[0]")
	for len(b.sent) > 0 {
		b.answer(nil)
	}
	b.reported("a [t-0 t-3]", "a [t-1]", "c [t-2]", "b [t-0]", "c [t-0]")
	if len(b.markers.tasks) > 0 || !b.markers.NextDeadline(b.now).IsZero() {
		t.Error("something is left to do")
	}
}

// What is not written is written again, to whoever leads the partition then.
func TestMarkersAreTriedAgain(t *testing.T) {
	b := newMarkerBench(t)
	b.write("a", 10, 0, 0, 3)
	b.answer(map[int32]protocol.ErrorCode{3: protocol.NotLeaderOrFollower})
	b.reported("a [t-0]")
	b.expect("")
	b.publish(leader(2, 3, 2, 2))
	b.pass(10 * time.Millisecond)
	b.expect("to 2: 10/5 commit=true by 0 v2 t[3]")
	b.sent[0].done(nil, errLost)
	b.sent = nil
	b.pass(0)
	b.expect("")
	b.pass(time.Second)
	b.expect("to 2: 10/5 commit=true by 0 v2 t[3]")
	// The producer has a higher epoch there: nothing of this transaction is open.
	b.answer(map[int32]protocol.ErrorCode{3: protocol.InvalidProducerEpoch})
	b.reported("a [t-0]", "a [t-3]")
}

// A partition that is gone has no part in the transaction; one without leader waits.
func TestMarkersOfPartitionsThatAreGone(t *testing.T) {
	b := newMarkerBench(t)
	b.publish(leader(2, 0, protocol.NoNode, 1))
	b.write("a", 10, 0, 0)
	b.pass(time.Second)
	b.expect("")
	b.publish(removed(2))
	b.pass(time.Second)
	b.reported("a [t-0]")
}

// Who lost its partition of __transaction_state drops what it was asked for; who is
// asked anew begins anew.
func TestMarkersOfLostCoordinators(t *testing.T) {
	b := newMarkerBench(t)
	b.write("a", 10, 0, 0)
	b.publish(leader(1, 0, 2, 2))
	b.answer(map[int32]protocol.ErrorCode{0: protocol.NotLeaderOrFollower})
	b.pass(time.Minute)
	b.expect("")
	b.publish(leader(1, 0, 1, 1))
	b.write("a", 10, 2, 0)
	b.expect("to 1: 10/5 commit=true by 2 v2 t[0]")
	b.write("a", 10, 2, 0, 3) // asked again, as after a failed write
	b.answer(nil)
	b.reported()
	b.expect("to 1: 10/5 commit=true by 2 v2 t[0 3]")
	b.answer(nil)
	b.reported("a [t-0 t-3]")
}

// A coordinator that cannot write down what it is told is told again; one that is
// loaded anew will ask.
func TestMarkersAreReportedAgain(t *testing.T) {
	b := newMarkerBench(t)
	b.refuse = protocol.CoordinatorNotAvailable.Err()
	b.write("a", 10, 0, 0)
	b.answer(nil)
	b.pass(5 * time.Millisecond)
	b.reported()
	b.refuse = nil
	b.pass(time.Second)
	b.reported("a [t-0]")
	b.refuse = protocol.CoordinatorLoadInProgress.Err()
	b.write("b", 11, 0, 0)
	b.answer(nil)
	b.refuse = nil
	b.pass(time.Minute)
	b.reported("a [t-0]")
}

func TestDrawProducerID(t *testing.T) {
	b := newMarkerBench(t)
	b.markers.Carry(1, txn.DrawProducerID{})
	b.tick()
	b.drawErr = errLost
	b.markers.Carry(1, txn.DrawProducerID{})
	b.tick()
	if want := []any{txn.ProducerIDDrawn{ID: 1}, txn.ProducerIDDrawn{ID: protocol.NoProducerID}}; !slices.Equal(b.events, want) {
		t.Errorf("the coordinator was told %v", b.events)
	}
}

// additionsBench is Additions with the brokers of a markerBench.
func additionsBench(t *testing.T) (*markerBench, *Additions) {
	b := newMarkerBench(t)
	return b, NewAdditions(AdditionsOptions{
		Image: func() *metadata.Image { return b.image }, Wake: func() {}, Logger: slog.New(slog.DiscardHandler),
		PartitionFor: func(string) int32 { return 1 }, RetryPause: 20 * time.Millisecond, RetryMost: 50 * time.Millisecond,
		SendTo: func(to protocol.NodeID, req kmsg.Request, done func(kmsg.Response, error)) {
			b.sent = append(b.sent, sent{to, req, done})
		},
	})
}

func (b *markerBench) answerAddition(codes ...protocol.ErrorCode) {
	one := b.sent[0]
	b.sent = b.sent[1:]
	resp := kmsg.NewPtrAddPartitionsToTxnResponse()
	asked := one.req.(*kmsg.AddPartitionsToTxnRequest).Transactions[0]
	result := kmsg.NewAddPartitionsToTxnResponseTransaction()
	result.TransactionalID = asked.TransactionalID
	at := 0
	for _, topic := range asked.Topics {
		of := kmsg.AddPartitionsToTxnResponseTransactionTopic{Topic: topic.Topic}
		for _, n := range topic.Partitions {
			of.Partitions = append(of.Partitions, kmsg.AddPartitionsToTxnResponseTransactionTopicPartition{Partition: n, ErrorCode: int16(codes[at])})
			at++
		}
		result.Topics = append(result.Topics, of)
	}
	resp.Transactions = append(resp.Transactions, result)
	one.done(resp, nil)
}

func TestAdditions(t *testing.T) {
	b, a := additionsBench(t)
	var got []protocol.ErrorCode
	ask := func(add, abortable bool) {
		got = nil
		a.Ask(b.now, Addition{TransactionalID: "x", ProducerID: 7, Epoch: 2, Partitions: parts(3, 1), Add: add, Abortable: abortable},
			func(codes []protocol.ErrorCode) { got = codes })
	}
	expect := func(want ...protocol.ErrorCode) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("got %v, not %v", got, want)
		}
	}
	ask(false, false)
	if m := b.sent[0].req.(*kmsg.AddPartitionsToTxnRequest).Transactions[0]; b.sent[0].to != 1 || !m.VerifyOnly || m.ProducerID != 7 || m.ProducerEpoch != 2 || !slices.Equal(m.Topics[0].Partitions, []int32{3, 1}) {
		t.Errorf("sent %+v to %d", m, b.sent[0].to)
	}
	b.answerAddition(protocol.None, protocol.TransactionAbortable)
	expect(protocol.None, protocol.InvalidTxnState)
	ask(false, true)
	b.answerAddition(protocol.TransactionAbortable, protocol.ProducerFenced)
	expect(protocol.TransactionAbortable, protocol.InvalidProducerEpoch)
	ask(true, true)
	b.sent[0].done(nil, errLost)
	b.sent = nil
	expect(protocol.NetworkException, protocol.NetworkException)
	b.publish(leader(1, 1, protocol.NoNode, 1))
	ask(true, true)
	expect(protocol.CoordinatorNotAvailable, protocol.CoordinatorNotAvailable)
}

// A coordinator that is followed by another before it answers may have known less than the producer.
func TestAdditionsAskTheNextCoordinator(t *testing.T) {
	b, a := additionsBench(t)
	var got []protocol.ErrorCode
	for _, refusal := range []protocol.ErrorCode{protocol.ProducerFenced, protocol.InvalidProducerIDMapping, protocol.NotCoordinator, protocol.None} {
		a.Ask(b.now, Addition{TransactionalID: "x", Partitions: parts(3), Add: true}, func(codes []protocol.ErrorCode) { got = codes })
		b.publish(leader(1, 1, b.sent[0].to%3+1, 1, 2, 3))
		b.answerAddition(refusal)
		if refusal != protocol.None {
			if got != nil || len(b.sent) != 1 || b.sent[0].to != b.image.Partition(protocol.TopicPartition{Topic: protocol.TransactionStateTopic, Partition: 1}).Leader {
				t.Fatalf("after %s: got %v, sent %v", refusal, got, b.sent)
			}
			b.answerAddition(protocol.None)
		}
		if !slices.Equal(got, []protocol.ErrorCode{protocol.None}) || len(b.sent) > 0 {
			t.Errorf("after %s: got %v, sent %v", refusal, got, b.sent)
		}
		got = nil
	}
}

// What comes while the transaction before is being ended is tried again for a while.
func TestAdditionsAreTriedAgain(t *testing.T) {
	b, a := additionsBench(t)
	var got []protocol.ErrorCode
	ask := func(add bool) {
		a.Ask(b.now, Addition{TransactionalID: "x", Partitions: parts(3), Add: add}, func(codes []protocol.ErrorCode) { got = codes })
	}
	ask(false)
	b.answerAddition(protocol.ConcurrentTransactions)
	if !slices.Equal(got, []protocol.ErrorCode{protocol.ConcurrentTransactions}) {
		t.Errorf("a verification got %v", got)
	}
	got = nil
	ask(true)
	for range 3 {
		if len(b.sent) != 1 || got != nil {
			t.Fatalf("%d sent, got %v", len(b.sent), got)
		}
		b.answerAddition(protocol.ConcurrentTransactions)
		a.Tick(b.now)
		b.now = b.now.Add(20 * time.Millisecond)
		a.Tick(b.now)
	}
	if !slices.Equal(got, []protocol.ErrorCode{protocol.ConcurrentTransactions}) || len(b.sent) > 0 {
		t.Errorf("after the time is up it got %v, %d are sent", got, len(b.sent))
	}
	got = nil
	ask(true)
	b.answerAddition(protocol.ConcurrentTransactions)
	a.Tick(b.now)
	b.now = b.now.Add(20 * time.Millisecond)
	a.Tick(b.now)
	b.answerAddition(protocol.None)
	if !slices.Equal(got, []protocol.ErrorCode{protocol.None}) || !a.NextDeadline(b.now).IsZero() {
		t.Errorf("got %v", got)
	}
}
