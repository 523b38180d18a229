package api

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/protocol/wire"
)

// transcript is where stands what Apache Kafka 4.4.0 answered; see
// testdata/README.md.
const transcript = "testdata/transactions-4.4.0.txt"

// TestTransactionsAsApacheKafka sends raw requests of transactions, in every version,
// and wants the answers that Apache Kafka 4.4.0 gave. With OTTLA_APACHE_KAFKA it asks
// it anew.
func TestTransactionsAsApacheKafka(t *testing.T) {
	if address := os.Getenv("OTTLA_APACHE_KAFKA"); address != "" {
		s := &sequence{t: t, ids: map[int64]string{}, nowMs: func() int64 { return time.Now().UnixMilli() }}
		s.connect(address)
		s.run()
		if err := os.WriteFile(transcript, []byte(s.said.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	f := newFixture(t)
	f.controller = allocating()
	f.topic("t", topicSpec{partitions: 2})
	f.coordinate()
	f.coordinateTransactions()
	p := f.connect()
	s := &sequence{t: t, ids: map[int64]string{}, topicID: topicID("t"), nowMs: fixtureStart.UnixMilli}
	s.ask = func(req kmsg.Request, version int16) kmsg.Response {
		p.send(req, version)
		return p.receive(req)
	}
	s.run()
	want, err := os.ReadFile(transcript)
	if err != nil {
		t.Fatal(err)
	}
	got, expected := strings.Split(s.said.String(), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(got), len(expected)) {
		if got[i] != expected[i] {
			t.Errorf("line %d is\n%s\nand Apache Kafka says\n%s", i+1, got[i], expected[i])
		}
	}
	if len(got) != len(expected) {
		t.Errorf("%d lines, not %d", len(got), len(expected))
	}
}

// sequence is the requests, and what was answered.
type sequence struct {
	t       *testing.T
	ask     func(req kmsg.Request, version int16) kmsg.Response
	nowMs   func() int64
	topicID protocol.TopicID
	ids     map[int64]string // producer ids, as P1, P2, …
	said    strings.Builder
}

// connect makes ask speak to a broker of Apache Kafka, and has it make what is
// needed.
func (r *sequence) connect(address string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	client := "c"
	r.ask = func(req kmsg.Request, version int16) kmsg.Response {
		req.SetVersion(version)
		header := wire.RequestHeader{Key: protocol.APIKey(req.Key()), Version: version, CorrelationID: 7, ClientID: &client}
		if _, err := conn.Write(wire.AppendRequest(nil, header, req)); err != nil {
			r.t.Fatal(err)
		}
		var length [4]byte
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			r.t.Fatal(err)
		}
		frame := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(conn, frame); err != nil {
			r.t.Fatal(err)
		}
		_, resp, err := wire.ReadResponse(frame, req)
		if err != nil {
			r.t.Fatal(err)
		}
		return resp
	}
	create := kmsg.NewPtrCreateTopicsRequest()
	create.TimeoutMillis = 10_000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "t", 2, 1
	create.Topics = append(create.Topics, topic)
	r.ask(create, 7)
	metadata := kmsg.NewPtrMetadataRequest()
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = kmsg.StringPtr("t")
	metadata.Topics = append(metadata.Topics, asked)
	r.topicID = r.ask(metadata, 12).(*kmsg.MetadataResponse).Topics[0].TopicID
	for kind := range int8(2) {
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.CoordinatorType, find.CoordinatorKeys = kind, []string{"x"}
		for r.ask(find, 4).(*kmsg.FindCoordinatorResponse).Coordinators[0].ErrorCode != 0 {
			<-time.After(200 * time.Millisecond)
		}
	}
	r.init("warm", 5) // until it is loaded
}

// show asks and notes the answer.
func (r *sequence) show(what string, m kmsg.Request, v int16) kmsg.Response {
	resp := r.ask(m, v)
	b, err := json.Marshal(resp)
	if err != nil {
		r.t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(b)))
	decoder.UseNumber()
	var any any
	if err := decoder.Decode(&any); err != nil {
		r.t.Fatal(err)
	}
	text, err := json.Marshal(r.tidy("", any))
	if err != nil {
		r.t.Fatal(err)
	}
	fmt.Fprintf(&r.said, "%s v%d: %s\n", what, v, text)
	return resp
}

// tidy masks what is another in every run, and sorts what is the order of a hash
// table in Apache Kafka.
func (r *sequence) tidy(name string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "UnknownTags")
		for key, inner := range v {
			v[key] = r.tidy(key, inner)
		}
		return v
	case []any:
		if name == "TopicID" {
			return "id"
		}
		for i, inner := range v {
			v[i] = r.tidy("", inner)
		}
		slices.SortFunc(v, func(a, b any) int { return cmp.Compare(sortKey(a), sortKey(b)) })
		return v
	case json.Number:
		n, _ := v.Int64()
		switch {
		case name == "ProducerID" && n >= 0:
			if r.ids[n] == "" {
				r.ids[n] = fmt.Sprint("P", len(r.ids)+1)
			}
			return r.ids[n]
		case n > 1_000_000_000_000:
			return "time"
		}
	}
	return value
}

func sortKey(v any) string {
	if m, ok := v.(map[string]any); ok {
		for _, key := range []string{"Partition", "TransactionalID", "Topic"} {
			if m[key] != nil {
				return fmt.Sprint(m[key])
			}
		}
	}
	return ""
}

// prod is a producer of the sequence.
type prod struct {
	id  string
	pid int64
	ep  int16
	seq int32
}

func (r *sequence) init(id string, v int16) *prod {
	m := kmsg.NewPtrInitProducerIDRequest()
	m.TransactionalID, m.TransactionTimeoutMillis = &id, 60_000
	for {
		resp := r.ask(m, v).(*kmsg.InitProducerIDResponse)
		if resp.ErrorCode == 0 {
			return &prod{id, resp.ProducerID, resp.ProducerEpoch, 0}
		}
	}
}

// completed waits until the markers of a transaction are written.
func (r *sequence) completed(id string) {
	m := kmsg.NewPtrDescribeTransactionsRequest()
	m.TransactionalIDs = []string{id}
	for strings.HasPrefix(r.ask(m, 0).(*kmsg.DescribeTransactionsResponse).TransactionStates[0].State, "Prepare") {
	}
}

func (r *sequence) produce(what string, p *prod, v int16, id *string, trans bool, topic string, tid [16]byte, parts ...int32) {
	m := kmsg.NewPtrProduceRequest()
	m.TransactionID, m.Acks, m.TimeoutMillis = id, -1, 5_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = topic, tid
	for _, n := range parts {
		o := record.PlainOptions()
		o.ProducerID, o.ProducerEpoch, o.BaseSequence, o.Transactional = protocol.ProducerID(p.pid), protocol.ProducerEpoch(p.ep), p.seq, trans
		b := record.NewBuilder(o)
		b.Append(r.nowMs(), nil, []byte("v"), nil)
		q := kmsg.NewProduceRequestTopicPartition()
		q.Partition, q.Records = n, b.Build(compress.NewPool())
		t.Partitions = append(t.Partitions, q)
	}
	m.Topics = append(m.Topics, t)
	r.show("produce "+what, m, v)
}

func (r *sequence) add(what string, p *prod, v int16, verify bool, topic string, parts ...int32) {
	m := kmsg.NewPtrAddPartitionsToTxnRequest()
	if v < 4 {
		m.TransactionalID, m.ProducerID, m.ProducerEpoch = p.id, p.pid, p.ep
		m.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: topic, Partitions: parts}}
	} else {
		one := kmsg.NewAddPartitionsToTxnRequestTransaction()
		one.TransactionalID, one.ProducerID, one.ProducerEpoch, one.VerifyOnly = p.id, p.pid, p.ep, verify
		one.Topics = []kmsg.AddPartitionsToTxnRequestTransactionTopic{{Topic: topic, Partitions: parts}}
		m.Transactions = append(m.Transactions, one)
	}
	r.show("add "+what, m, v)
}

func (r *sequence) end(what string, p *prod, v int16, commit bool) {
	m := kmsg.NewPtrEndTxnRequest()
	m.TransactionalID, m.ProducerID, m.ProducerEpoch, m.Commit = p.id, p.pid, p.ep, commit
	resp := r.show("end "+what, m, v)
	if x, ok := resp.(*kmsg.EndTxnResponse); ok && x.ErrorCode == 0 && v >= 5 {
		p.pid, p.ep, p.seq = x.ProducerID, x.ProducerEpoch, 0
	}
	r.completed(p.id)
}

func (r *sequence) commit(what string, p *prod, v int16, group, topic string, tid [16]byte, gen int32, member string, part int32) {
	m := kmsg.NewPtrTxnOffsetCommitRequest()
	m.TransactionalID, m.ProducerID, m.ProducerEpoch, m.Group, m.Generation, m.MemberID = p.id, p.pid, p.ep, group, gen, member
	pt := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	pt.Partition, pt.Offset = part, 3
	m.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: topic, TopicID: tid, Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{pt}}}
	r.show("commit "+what, m, v)
}

func (r *sequence) marker(what string, v int16, pid int64, ep int16, commit bool, coord int32, tv int8, topic string, parts ...int32) {
	m := kmsg.NewPtrWriteTxnMarkersRequest()
	o := kmsg.NewWriteTxnMarkersRequestMarker()
	o.ProducerID, o.ProducerEpoch, o.Committed, o.CoordinatorEpoch, o.TransactionVersion = pid, ep, commit, coord, tv
	o.Topics = []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: topic, Partitions: parts}}
	m.Markers = append(m.Markers, o)
	r.show("marker "+what, m, v)
}

func (r *sequence) run() {
	r.initialise()
	r.addForClients()
	r.addForBrokers()
	r.addOffsets()
	r.produceAll()
	r.commitOffsets()
	r.writeMarkers()
	r.look()
}

func (r *sequence) initialise() {
	for v := range int16(6) {
		m := kmsg.NewPtrInitProducerIDRequest()
		m.TransactionalID, m.TransactionTimeoutMillis = kmsg.StringPtr("i"), 60_000
		r.show("init", m, v)
		m.TransactionalID = kmsg.StringPtr("")
		r.show("init empty", m, v)
		m.TransactionalID, m.TransactionTimeoutMillis = kmsg.StringPtr("i"), 900_001
		r.show("init timeout", m, v)
		if v >= 3 {
			m.TransactionTimeoutMillis, m.ProducerID, m.ProducerEpoch = 60_000, 888, 0
			r.show("init fenced", m, v)
		}
	}
}

func (r *sequence) addForClients() {
	for v := range int16(4) {
		p := r.init(fmt.Sprint("a", v), 5)
		r.add("unknown topic", p, v, false, "nope", 0)
		r.add("internal", p, v, false, "__consumer_offsets", 0)
		r.add("some", p, v, false, "t", 0, 5)
		r.add("none", p, v, false, "t")
		r.add("ok", p, v, false, "t", 0, 1)
		r.add("empty id", &prod{"", p.pid, p.ep, 0}, v, false, "t", 0)
		r.add("no id", &prod{"none", p.pid, p.ep, 0}, v, false, "t", 0)
		r.add("epoch", &prod{p.id, p.pid, p.ep + 1, 0}, v, false, "t", 0)
		r.end("epoch", &prod{p.id, p.pid, p.ep + 1, 0}, v, true)
		r.end("ok", p, v, true)
	}
}

func (r *sequence) addForBrokers() {
	for _, v := range []int16{4, 5} {
		p := r.init(fmt.Sprint("b", v), 5)
		r.add("unknown topic", p, v, false, "nope", 0)
		r.add("verify", p, v, true, "t", 0)
		r.add("internal", p, v, false, "__consumer_offsets", 0)
		r.add("ok", p, v, false, "t", 0)
		r.add("verify", p, v, true, "t", 0, 1)
		r.add("verify bad", &prod{p.id, p.pid, p.ep + 1, 0}, v, true, "t", 0)
		r.add("verify empty", &prod{"", p.pid, p.ep + 1, 0}, v, true, "t", 0)
		r.add("empty", &prod{"", p.pid, p.ep + 1, 0}, v, false, "t", 0)
		r.end("", p, 4, false)
	}
}

func (r *sequence) addOffsets() {
	for v := range int16(5) {
		p := r.init(fmt.Sprint("o", v), 5)
		m := kmsg.NewPtrAddOffsetsToTxnRequest()
		m.TransactionalID, m.ProducerID, m.ProducerEpoch, m.Group = p.id, p.pid, p.ep, "g"
		r.show("addoffsets", m, v)
		m.Group = ""
		r.show("addoffsets no group", m, v)
		m.ProducerEpoch++
		r.show("addoffsets epoch", m, v)
		m.TransactionalID = ""
		r.show("addoffsets no id", m, v)
		r.end("", p, 4, true)
	}
}

func (r *sequence) produceAll() {
	for v := int16(3); v <= 13; v++ {
		p := r.init(fmt.Sprint("p", v), 5)
		r.produce("not added", p, v, &p.id, true, "t", r.topicID, 0)
		if v < 12 {
			r.add("", p, 3, false, "t", 0)
			r.produce("added", p, v, &p.id, true, "t", r.topicID, 0)
		}
		r.produce("again", p, v, &p.id, true, "t", r.topicID, 0)
		p.seq++
		r.produce("next", p, v, &p.id, true, "t", r.topicID, 0)
		r.produce("two", p, v, &p.id, true, "t", r.topicID, 0, 1)
		r.produce("plain within", p, v, nil, false, "t", r.topicID, 0)
		r.produce("no id", p, v, nil, true, "t", r.topicID, 0)
		r.produce("other id", p, v, kmsg.StringPtr("other"), true, "t", r.topicID, 1)
		old := *p
		r.end("", p, map[bool]int16{true: 4, false: 5}[v < 12], true)
		old.seq++
		r.produce("late", &old, v, &p.id, true, "t", r.topicID, 0)
		p.seq = 4
		r.produce("gap", p, v, &p.id, true, "t", r.topicID, 0)
		r.end("", p, map[bool]int16{true: 4, false: 5}[v < 12], false)
	}
}

func (r *sequence) commitOffsets() {
	for v := range int16(7) {
		p := r.init(fmt.Sprint("c", v), 5)
		r.commit("not added", p, v, "cg", "t", r.topicID, -1, "", 0)
		if v < 5 {
			m := kmsg.NewPtrAddOffsetsToTxnRequest()
			m.TransactionalID, m.ProducerID, m.ProducerEpoch, m.Group = p.id, p.pid, p.ep, "cg"
			r.show("addoffsets", m, 3)
		}
		r.commit("ok", p, v, "cg", "t", r.topicID, -1, "", 0)
		r.commit("again", p, v, "cg", "t", r.topicID, -1, "", 1)
		r.commit("no group", p, v, "", "t", r.topicID, -1, "", 0)
		r.commit("unknown", p, v, "cg", "nope", [16]byte{9}, -1, "", 0)
		r.commit("partition", p, v, "cg", "t", r.topicID, -1, "", 9)
		r.commit("gen", p, v, "cgx", "t", r.topicID, 4, "m", 0)
		r.commit("epoch", &prod{p.id, p.pid, p.ep + 1, 0}, v, "cg", "t", r.topicID, -1, "", 0)
		r.commit("no id", &prod{"zz", p.pid, p.ep, 0}, v, "cg", "t", r.topicID, -1, "", 0)
		r.end("", p, map[bool]int16{true: 4, false: 5}[v < 5], true)
	}
}

func (r *sequence) writeMarkers() {
	for _, v := range []int16{1, 2} {
		for _, tv := range []int8{0, 2} {
			p := r.init(fmt.Sprint("m", v, tv), 5)
			r.produce("", p, 12, &p.id, true, "t", r.topicID, 0)
			r.marker("unknown", v, p.pid, p.ep, false, 5, tv, "nope", 0)
			r.marker("partition", v, p.pid, p.ep, false, 5, tv, "t", 7)
			r.marker("same epoch", v, p.pid, p.ep, false, 5, tv, "t", 0)
			r.marker("older coordinator", v, p.pid, p.ep+1, false, 4, tv, "t", 0)
			r.marker("newer", v, p.pid, p.ep+1, true, 5, tv, "t", 0)
			r.marker("again", v, p.pid, p.ep+1, true, 5, tv, "t", 0)
			r.marker("older", v, p.pid, p.ep, true, 5, tv, "t", 0)
			r.marker("unknown producer", v, 99_999, 3, true, 5, tv, "t", 0)
			r.marker("offsets", v, p.pid, p.ep+1, true, 5, tv, "__consumer_offsets", 0)
			r.marker("offsets older", v, p.pid, p.ep, true, 5, tv, "__consumer_offsets", 0)
		}
	}
}

func (r *sequence) look() {
	d := kmsg.NewPtrDescribeTransactionsRequest()
	d.TransactionalIDs = []string{"", "unknown", "i"}
	r.show("describe", d, 0)
	for v := range int16(3) {
		l := kmsg.NewPtrListTransactionsRequest()
		l.DurationFilterMillis = -1
		l.StateFilters = []string{"Ongoing", "Foo", "PrepareEpochFence"}
		r.show("list", l, v)
		l.StateFilters, l.TransactionalIDPattern = []string{"Empty"}, kmsg.StringPtr("i|b.*")
		if v == 2 {
			r.show("list", l, v)
			l.TransactionalIDPattern = kmsg.StringPtr("(")
			r.show("list", l, v)
		}
	}
}
