package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/record"
)

// transactor is a transactional producer on a connection of its own.
type transactor struct {
	*peer
	id    string
	pid   int64
	epoch int16
	seq   int32
}

// transact makes a producer, with everything that it needs.
func (f *fixture) transact(id string) *transactor {
	f.t.Helper()
	p := &transactor{peer: f.connect(), id: id}
	p.init(5)
	return p
}

func (f *fixture) forTransactions() {
	f.t.Helper()
	f.controller = allocating()
	f.topic("orders", topicSpec{partitions: 2})
	f.coordinateTransactions()
}

func (p *transactor) init(version int16) {
	p.f.t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &p.id, 60_000
	resp := request[*kmsg.InitProducerIDResponse](p.peer, req, version)
	if resp.ErrorCode != 0 {
		p.f.t.Fatalf("InitProducerId: %v", codeOf(resp.ErrorCode))
	}
	p.pid, p.epoch, p.seq = resp.ProducerID, resp.ProducerEpoch, 0
}

// add adds partitions of a topic, or verifies them, and gives their codes.
func (p *transactor) add(version int16, topic string, verify bool, partitions ...int32) (codes []codeOf) {
	p.f.t.Helper()
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	if version < firstBetweenBrokers {
		req.TransactionalID, req.ProducerID, req.ProducerEpoch = p.id, p.pid, p.epoch
		req.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: topic, Partitions: partitions}}
	} else {
		one := kmsg.NewAddPartitionsToTxnRequestTransaction()
		one.TransactionalID, one.ProducerID, one.ProducerEpoch, one.VerifyOnly = p.id, p.pid, p.epoch, verify
		one.Topics = []kmsg.AddPartitionsToTxnRequestTransactionTopic{{Topic: topic, Partitions: partitions}}
		req.Transactions = append(req.Transactions, one)
	}
	resp := request[*kmsg.AddPartitionsToTxnResponse](p.peer, req, version)
	for _, t := range resp.Topics {
		for _, one := range t.Partitions {
			codes = append(codes, codeOf(one.ErrorCode))
		}
	}
	for _, one := range resp.Transactions {
		for _, t := range one.Topics {
			for _, part := range t.Partitions {
				codes = append(codes, codeOf(part.ErrorCode))
			}
		}
	}
	return codes
}

func (p *transactor) end(version int16, commit bool) codeOf {
	p.f.t.Helper()
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = p.id, p.pid, p.epoch, commit
	resp := request[*kmsg.EndTxnResponse](p.peer, req, version)
	if resp.ErrorCode == 0 && version >= firstWithEpochBump {
		p.pid, p.epoch, p.seq = resp.ProducerID, resp.ProducerEpoch, 0
	}
	return codeOf(resp.ErrorCode)
}

// produce writes to partition 0 of "orders".
func (p *transactor) produce(version int16, value string) codeOf {
	p.f.t.Helper()
	options := record.PlainOptions()
	options.ProducerID, options.ProducerEpoch, options.BaseSequence, options.Transactional = protocol.ProducerID(p.pid), protocol.ProducerEpoch(p.epoch), p.seq, true
	req := produceTo(p.f, version, -1, "orders", buildBatch(options, value))
	req.TransactionID = &p.id
	code := codeOf(request[*kmsg.ProduceResponse](p.peer, req, version).Topics[0].Partitions[0].ErrorCode)
	if code == protocol.None {
		p.seq++
	}
	return code
}

// completed waits until the transaction has all its markers.
func (p *transactor) completed() *kmsg.DescribeTransactionsResponseTransactionState {
	p.f.t.Helper()
	for {
		d := p.describe()
		if !strings.HasPrefix(d.State, "Prepare") {
			return d
		}
	}
}

func (p *transactor) describe() *kmsg.DescribeTransactionsResponseTransactionState {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{p.id}
	resp := request[*kmsg.DescribeTransactionsResponse](p.peer, req, 0)
	return &resp.TransactionStates[0]
}

// BEHAVIOUR 65, 71: clients of transactions v1, in every version of what they send.
func TestTransactionsV1(t *testing.T) {
	for version := range int16(firstBetweenBrokers) {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			f := newFixture(t)
			f.forTransactions()
			p := f.transact("tx")
			before := *p
			before.peer = f.connect()
			if got := p.add(version, "orders", false, 0, 1); !slices.Equal(got, []codeOf{0, 0}) {
				t.Fatalf("added: %v", got)
			}
			if got := p.produce(9, "a"); got != protocol.None {
				t.Fatalf("produced: %v", got)
			}
			if got := p.describe(); got.State != "Ongoing" || got.ProducerID != p.pid || len(got.Topics) != 1 || !slices.Equal(got.Topics[0].Partitions, []int32{0, 1}) {
				t.Errorf("described as %+v", got)
			}
			if got := p.end(version, true); got != protocol.None {
				t.Fatalf("ended: %v", got)
			}
			if got := p.completed(); got.State != "CompleteCommit" || len(got.Topics) > 0 {
				t.Errorf("described as %+v", got)
			}
			if got := p.end(version, true); got != protocol.None {
				t.Errorf("the same again: %v", got)
			}
			if got := p.end(version, false); got != protocol.InvalidTxnState {
				t.Errorf("the opposite: %v", got)
			}
			p.init(min(version, 4))
			fenced := protocol.ProducerFenced
			if version < 2 {
				fenced = protocol.InvalidProducerEpoch
			}
			if got := before.end(version, true); got != fenced {
				t.Errorf("the producer before ends: %v", got)
			}
			if got := before.add(version, "orders", false, 0); got[0] != fenced {
				t.Errorf("the producer before adds: %v", got)
			}
			if got := before.produce(9, "b"); got != protocol.InvalidProducerEpoch {
				t.Errorf("the producer before writes: %v", got)
			}
		})
	}
}

// BEHAVIOUR 68, 72: clients of transactions v2. The broker adds what they write to.
func TestTransactionsV2(t *testing.T) {
	f := newFixture(t)
	f.forTransactions()
	p := f.transact("tx")
	for i, commit := range []bool{true, false} {
		if got := p.produce(12, "a"); got != protocol.None {
			t.Fatalf("produced: %v", got)
		}
		if got := p.produce(13, "b"); got != protocol.None {
			t.Fatalf("produced: %v", got)
		}
		before := *p
		before.peer = f.connect()
		if got := p.end(5, commit); got != protocol.None || p.epoch != int16(i+1) {
			t.Fatalf("ended: %v, epoch %d", got, p.epoch)
		}
		want := map[bool]string{true: "CompleteCommit", false: "CompleteAbort"}[commit]
		if got := p.completed(); got.State != want || got.ProducerEpoch != p.epoch {
			t.Errorf("described as %+v", got)
		}
		again := before
		if got := again.end(5, commit); got != protocol.None || again.epoch != p.epoch {
			t.Errorf("a retry: %v, epoch %d", got, again.epoch)
		}
		if got := before.produce(12, "late"); got != protocol.InvalidProducerEpoch {
			t.Errorf("a late write: %v", got)
		}
	}
	// One that does not say what it writes to, in the words of its version.
	for version, want := range map[int16]protocol.ErrorCode{9: protocol.InvalidTxnState, 10: protocol.InvalidTxnState, 11: protocol.TransactionAbortable} {
		if got := p.produce(version, "c"); got != want {
			t.Errorf("Produce %d to a partition that was not added: %v, not %v", version, got, want)
		}
	}
	stranger := &transactor{peer: f.connect(), id: "nobody", pid: 4711}
	if got := stranger.produce(12, "d"); got != protocol.InvalidProducerIDMapping {
		t.Errorf("a stranger writes: %v", got)
	}
}

// Two producers in one request.
func TestProduceOfTwoProducers(t *testing.T) {
	f := newFixture(t)
	f.forTransactions()
	options := record.PlainOptions()
	options.ProducerID, options.ProducerEpoch, options.BaseSequence, options.Transactional = 1, 0, 0, true
	other := options
	other.ProducerEpoch = 1
	req := produceTo(f, 12, -1, "orders", buildBatch(options, "a"), buildBatch(other, "b"))
	req.TransactionID = ptr("tx")
	for _, got := range request[*kmsg.ProduceResponse](f.connect(), req, 12).Topics[0].Partitions {
		expectCode(t, "two producers", got.ErrorCode, protocol.InvalidProducerIDMapping)
	}
}

func TestAddPartitionsRefuses(t *testing.T) {
	authorizer := deny("forbidden", "secret")
	f := newFixture(t, func(n *Node) { n.Authorize = authorizer })
	f.forTransactions()
	p := f.transact("tx")
	for _, version := range []int16{0, 3} {
		if got := p.add(version, "secret", false, 0); got[0] != protocol.TopicAuthorizationFailed {
			t.Errorf("a secret topic: %v", got)
		}
		if got := p.add(version, protocol.ConsumerOffsetsTopic, false, 0); got[0] != protocol.TopicAuthorizationFailed {
			t.Errorf("an internal topic: %v", got)
		}
		if got := p.add(version, "orders", false, 0, 7); !slices.Equal(got, []codeOf{protocol.OperationNotAttempted, protocol.UnknownTopicOrPartition}) {
			t.Errorf("a partition that is not there: %v", got)
		}
		for id, want := range map[string]protocol.ErrorCode{"forbidden": protocol.TransactionalIDAuthorizationFailed, "": protocol.InvalidRequest, "nobody": protocol.InvalidProducerIDMapping} {
			other := &transactor{peer: p.peer, id: id}
			if got := other.add(version, "orders", false, 0); got[0] != want {
				t.Errorf("%q: %v, not %v", id, got, want)
			}
			if got := other.end(version, true); got != want {
				t.Errorf("%q ends: %v, not %v", id, got, want)
			}
		}
	}
	// Between brokers.
	if got := p.add(5, "orders", true, 0, 1); !slices.Equal(got, []codeOf{protocol.TransactionAbortable, protocol.TransactionAbortable}) {
		t.Errorf("verified: %v", got)
	}
	if got := p.add(4, "orders", false, 1); got[0] != protocol.None {
		t.Errorf("added: %v", got)
	}
	if got := p.add(4, "orders", true, 0, 1); !slices.Equal(got, []codeOf{protocol.TransactionAbortable, protocol.None}) {
		t.Errorf("verified: %v", got)
	}
	authorizer.names["kafka-cluster"] = true
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	if got := request[*kmsg.AddPartitionsToTxnResponse](p.peer, req, 4); protocol.ErrorCode(got.ErrorCode) != protocol.ClusterAuthorizationFailed {
		t.Errorf("from a client: %+v", got)
	}
	if got := request[*kmsg.WriteTxnMarkersResponse](p.peer, markers(1, "orders", p.pid, 0, true, 1), 1); protocol.ErrorCode(got.Markers[0].Topics[0].Partitions[0].ErrorCode) != protocol.ClusterAuthorizationFailed {
		t.Errorf("markers from a client: %+v", got)
	}
}

func TestAddOffsetsToTxn(t *testing.T) {
	authorizer := deny("forbidden", "secret")
	f := newFixture(t, func(n *Node) { n.Authorize = authorizer })
	f.forTransactions()
	f.coordinate()
	p := f.transact("tx")
	versions(t, protocol.AddOffsetsToTxn, func(t *testing.T, version int16) {
		req := kmsg.NewPtrAddOffsetsToTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = p.id, p.pid, p.epoch, "g"
		expectCode(t, "added", request[*kmsg.AddOffsetsToTxnResponse](p.peer, req, version).ErrorCode, protocol.None)
		req.ProducerEpoch++
		want := protocol.ProducerFenced
		if version < 2 {
			want = protocol.InvalidProducerEpoch
		}
		expectCode(t, "another epoch", request[*kmsg.AddOffsetsToTxnResponse](p.peer, req, version).ErrorCode, want)
		req.Group = "secret"
		expectCode(t, "a secret group", request[*kmsg.AddOffsetsToTxnResponse](p.peer, req, version).ErrorCode, protocol.GroupAuthorizationFailed)
		req.TransactionalID = "forbidden"
		expectCode(t, "a forbidden id", request[*kmsg.AddOffsetsToTxnResponse](p.peer, req, version).ErrorCode, protocol.TransactionalIDAuthorizationFailed)
	})
	if got := p.describe(); len(got.Topics) != 1 || got.Topics[0].Topic != protocol.ConsumerOffsetsTopic {
		t.Errorf("described as %+v", got)
	}
}

func markers(version int16, topic string, pid int64, epoch int16, commit bool, coordinator int32, partitions ...int32) *kmsg.WriteTxnMarkersRequest {
	if len(partitions) == 0 {
		partitions = []int32{0}
	}
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	one := kmsg.NewWriteTxnMarkersRequestMarker()
	one.ProducerID, one.ProducerEpoch, one.Committed, one.CoordinatorEpoch = pid, epoch, commit, coordinator
	one.Topics = []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: topic, Partitions: partitions}}
	req.Markers = append(req.Markers, one)
	return req
}

// BEHAVIOUR 74: a transaction that an administrator ends.
func TestWriteTxnMarkers(t *testing.T) {
	versions(t, protocol.WriteTxnMarkers, func(t *testing.T, version int16) {
		f := newFixture(t)
		f.forTransactions()
		p := f.transact("tx")
		if got := p.produce(12, "a"); got != protocol.None {
			t.Fatalf("produced: %v", got)
		}
		code := func(req *kmsg.WriteTxnMarkersRequest) protocol.ErrorCode {
			resp := request[*kmsg.WriteTxnMarkersResponse](p.peer, req, version)
			if resp.Markers[0].ProducerID != p.pid {
				t.Errorf("an answer for producer %d", resp.Markers[0].ProducerID)
			}
			return protocol.ErrorCode(resp.Markers[0].Topics[0].Partitions[0].ErrorCode)
		}
		if got := code(markers(version, "orders", p.pid, p.epoch, false, 7)); got != protocol.None {
			t.Errorf("the marker: %v", got)
		}
		if got := code(markers(version, "orders", p.pid, p.epoch, false, 6)); got != protocol.TransactionCoordinatorFenced {
			t.Errorf("an older coordinator: %v", got)
		}
		if got := code(markers(version, "nothing", p.pid, p.epoch, false, 7)); got != protocol.UnknownTopicOrPartition {
			t.Errorf("a topic that is not there: %v", got)
		}
		if got := code(markers(version, protocol.ConsumerOffsetsTopic, p.pid, p.epoch, false, 7)); got != protocol.NotLeaderOrFollower {
			t.Errorf("a group's partition that is not here: %v", got)
		}
		for _, nobody := range []*kmsg.WriteTxnMarkersRequest{markers(version, "orders", -1, 0, true, 7), markers(version, "orders", p.pid, -1, true, 7)} {
			resp := request[*kmsg.WriteTxnMarkersResponse](p.peer, nobody, version)
			if got := codeOf(resp.Markers[0].Topics[0].Partitions[0].ErrorCode); got != protocol.UnknownServerError {
				t.Errorf("a producer that there is not: %v", got)
			}
		}
		odd := markers(version, "orders", p.pid, p.epoch, false, 7) // a producer twice, and one without partitions
		odd.Markers = append(odd.Markers, odd.Markers[0], kmsg.WriteTxnMarkersRequestMarker{ProducerID: 99})
		if resp := request[*kmsg.WriteTxnMarkersResponse](p.peer, odd, version); len(resp.Markers) != 1 {
			t.Errorf("markers: %+v", resp.Markers)
		}
	})
}

func TestListTransactions(t *testing.T) {
	authorizer := deny("secret")
	f := newFixture(t, func(n *Node) { n.Authorize = authorizer })
	f.forTransactions()
	a, b := f.transact("a"), f.transact("bb")
	f.transact("c")
	authorizer.names["c"] = true
	a.add(3, "orders", false, 0)
	f.clock.Add(int64(5 * time.Second))
	b.add(3, "orders", false, 0)
	versions(t, protocol.ListTransactions, func(t *testing.T, version int16) {
		list := func(change func(*kmsg.ListTransactionsRequest)) string {
			req := kmsg.NewPtrListTransactionsRequest()
			req.DurationFilterMillis = -1
			change(req)
			resp := request[*kmsg.ListTransactionsResponse](a.peer, req, version)
			var all []string
			for _, s := range resp.TransactionStates {
				all = append(all, fmt.Sprintf("%s %s %d", s.TransactionalID, s.TransactionState, s.ProducerID))
			}
			slices.Sort(all)
			if resp.ErrorCode != 0 {
				all = append(all, codeOf(resp.ErrorCode).String())
			}
			return strings.Join(append(all, resp.UnknownStateFilters...), ", ")
		}
		first, second := fmt.Sprintf("a Ongoing %d", a.pid), fmt.Sprintf("bb Ongoing %d", b.pid)
		for want, change := range map[string]func(*kmsg.ListTransactionsRequest){
			first + ", " + second:         func(*kmsg.ListTransactionsRequest) {},
			first:                         func(r *kmsg.ListTransactionsRequest) { r.ProducerIDFilters = []int64{a.pid} },
			first + ", " + second + ", x": func(r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"Ongoing", "x"} },
			"":                            func(r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"Empty"} },
		} {
			if got := list(change); got != want {
				t.Errorf("listed %q, not %q", got, want)
			}
		}
		if version >= listHasDurationsFrom {
			if got := list(func(r *kmsg.ListTransactionsRequest) { r.DurationFilterMillis = 4000 }); got != first {
				t.Errorf("longer than 4 s: %q", got)
			}
		}
		if version >= listHasPatternsFrom {
			if got := list(func(r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = ptr("a|b.") }); got != first+", "+second {
				t.Errorf("by pattern: %q", got)
			}
			if got := list(func(r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = ptr("b") }); got != "" {
				t.Errorf("by half a pattern: %q", got)
			}
			if got := list(func(r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = ptr(")(") }); got != protocol.InvalidRegularExpression.String() {
				t.Errorf("by no pattern: %q", got)
			}
		}
	})
	describe := kmsg.NewPtrDescribeTransactionsRequest()
	describe.TransactionalIDs = []string{"secret", "", "nobody"}
	for i, state := range request[*kmsg.DescribeTransactionsResponse](a.peer, describe, 0).TransactionStates {
		expectCode(t, "described", state.ErrorCode, []protocol.ErrorCode{protocol.TransactionalIDAuthorizationFailed, protocol.InvalidRequest, protocol.TransactionalIDNotFound}[i])
	}
}
