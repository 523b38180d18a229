package txn

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/schema"
	"ottla/protocol/wire"
)

// TestApacheKafka holds the core against what Apache Kafka 4.4.0 answered and
// wrote: the transcripts under testdata/apache-4.4.0 are Kafka's. With
// OTTLA_APACHE_KAFKA they are made anew (testdata/README.md).
func TestApacheKafka(t *testing.T) {
	s := apacheSettings()
	address := os.Getenv("OTTLA_APACHE_KAFKA")
	datadriven.Walk(t, "testdata/apache-4.4.0", func(t *testing.T, path string) {
		story := &story{rig: newRig(t, s), name: filepath.Base(path)}
		step := story.coreStep
		if address != "" {
			step = newApache(t, address, story).step
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			story.rig.t, story.d = t, d
			all := withoutRepeats(step())
			for _, a := range all { // Apache Kafka forgets in the order of a hash table
				slices.SortStableFunc(a.records, func(x, y machine.Record) int {
					if x.Value != nil || y.Value != nil {
						return 0
					}
					return bytes.Compare(x.Key, y.Key)
				})
			}
			return story.show(all...)
		})
	})
}

// withoutRepeats leaves out records by which the core makes certain that it still
// is the coordinator: Apache Kafka does not.
func withoutRepeats(all []answer) []answer {
	for i := range all {
		if all[i].repeats {
			all[i].records = nil
		}
	}
	return all
}

// warmID is the transactional id by which is seen whether Apache Kafka is ready.
const warmID = "warm"

// apacheSettings are those of the broker.
func apacheSettings() Settings {
	return Settings{
		MaxTimeout: 15 * time.Minute, Expiration: 6 * time.Second, TimeoutCheckInterval: time.Second, ExpiryCheckInterval: time.Second,
	}
}

// TestApacheLog loads a log that Apache Kafka 4.4.0 has written: what is found in it
// is what Apache Kafka itself finds, and it is gone on with alike. With
// OTTLA_APACHE_KAFKA it is made anew.
func TestApacheLog(t *testing.T) {
	const made, found, written = "testdata/log-4.4.0/made", "testdata/log-4.4.0/found", "testdata/log-4.4.0/log"
	run := func(s *story, step func() []answer, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.rig.t, s.d = t, d
			return s.show(withoutRepeats(step())...)
		})
	}
	settings := apacheSettings()
	settings.Expiration = 15 * time.Second
	begin := func() *story { return &story{rig: newRig(t, settings), name: "x"} }
	if address := os.Getenv("OTTLA_APACHE_KAFKA"); address != "" {
		s := begin()
		a := newApache(t, address, s)
		run(s, a.step, made)
		if err := os.WriteFile(written, a.batches(), 0o644); err != nil {
			t.Fatal(err)
		}
		run(s, a.step, found)
		return
	}
	s := begin()
	run(s, s.coreStep, made)
	log, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	loaded := begin()
	for _, c := range []*Coordinator{loaded.c, loaded.replica} {
		c.Resign()
		loaded.log = load(t, c, log)
	}
	for _, r := range loaded.log { // producers are numbered as they appear
		if nameOf(r.Key) != warmID {
			loaded.showRecord(r)
		}
	}
	loaded.now = time.UnixMilli(loaded.c.transactions["v0"].durable.updateMs)
	loaded.activate()
	run(loaded, loaded.coreStep, found)
}

// load applies the batches of a log, and gives their records.
func load(t *testing.T, c *Coordinator, log []byte) (all []machine.Record) {
	t.Helper()
	for len(log) > 0 {
		batch, rest, err := record.Next(log)
		if err != nil {
			t.Fatal(err)
		}
		var records []machine.Record
		for r, err := range record.Records(batch, nil, 1<<20) {
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, machine.Record{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)})
		}
		if err := c.Apply(protocol.Offset(len(all)), 1, 0, records); err != nil {
			t.Fatal(err)
		}
		all, log = append(all, records...), rest
	}
	return all
}

// batches are the whole of __transaction_state-0 as it is on disk.
func (a *apache) batches() (log []byte) {
	for next := int64(0); next < a.next; {
		rest := a.fetch(next)
		for len(rest) > 0 {
			batch, tail, err := record.Next(rest)
			if err != nil {
				break
			}
			log = append(log, batch...)
			next, rest = int64(batch.NextOffset()), tail
		}
	}
	return log
}

// coreStep runs one command on the core. Between commands a little time goes by.
func (s *story) coreStep() (all []answer) {
	after := func() []answer { return s.reportAll() }
	switch s.d.Cmd {
	case "version":
		s.version = int16(s.number("to", 2))
	case "wait":
		d, err := time.ParseDuration(s.d.CmdArgs[0].Key)
		if err != nil {
			s.t.Fatal(err)
		}
		all = s.advance(d, after)
	default:
		all = s.sendAll()
	}
	return append(all, s.advance(250*time.Millisecond, after)...)
}

// apache speaks to a broker of Apache Kafka instead of the core.
type apache struct {
	t       *testing.T
	story   *story
	address string
	conn    net.Conn
	next    int64           // offset of __transaction_state-0
	names   map[string]bool // transactional ids of this story
}

func newApache(t *testing.T, address string, s *story) *apache {
	a := &apache{t: t, story: s, address: address, names: map[string]bool{}}
	var err error
	if a.conn, err = net.Dial("tcp", address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.conn.Close() })
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version, create.TimeoutMillis = 7, 10_000
	for _, name := range []string{"t", "u"} {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 4, 1
		create.Topics = append(create.Topics, topic)
	}
	a.ask(create)
	for kind := range int8(2) {
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.Version, find.CoordinatorType, find.CoordinatorKeys = 4, kind, []string{"g"}
		for a.ask(find).(*kmsg.FindCoordinatorResponse).Coordinators[0].ErrorCode != 0 {
			pass(200 * time.Millisecond)
		}
	}
	warm := kmsg.NewPtrInitProducerIDRequest()
	warm.Version, warm.TransactionalID, warm.TransactionTimeoutMillis, warm.ProducerID, warm.ProducerEpoch = 5, kmsg.StringPtr(warmID), 60_000, -1, -1
	for a.ask(warm).(*kmsg.InitProducerIDResponse).ErrorCode != 0 {
		pass(200 * time.Millisecond)
	}
	a.records()
	return a
}

// pass lets real time go by: Apache Kafka has no other clock.
func pass(d time.Duration) { <-time.After(d) }

// ask sends a message and waits for the response.
func (a *apache) ask(message kmsg.Request) kmsg.Response {
	a.send(message)
	return a.receive(message)
}

func (a *apache) send(message kmsg.Request) {
	client := "oracle"
	header := wire.RequestHeader{Key: protocol.APIKey(message.Key()), Version: message.GetVersion(), CorrelationID: 7, ClientID: &client}
	if _, err := a.conn.Write(wire.AppendRequest(nil, header, message)); err != nil {
		a.t.Fatal(err)
	}
}

func (a *apache) receive(message kmsg.Request) kmsg.Response {
	var length [4]byte
	if _, err := io.ReadFull(a.conn, length[:]); err != nil {
		a.t.Fatal(err)
	}
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(a.conn, frame); err != nil {
		a.t.Fatal(err)
	}
	_, response, err := wire.ReadResponse(frame, message)
	if err != nil {
		a.t.Fatal(err)
	}
	return response
}

// records are what was written to __transaction_state since the last time, of the
// transactional ids of this story.
func (a *apache) records() (records []machine.Record) {
	for {
		rest := a.fetch(a.next)
		if len(rest) == 0 {
			return records
		}
		for len(rest) > 0 {
			batch, tail, err := record.Next(rest)
			if err != nil {
				break // the rest of a batch that did not fit
			}
			for r, err := range record.Records(batch, nil, 1<<20) {
				if err != nil {
					a.t.Fatal(err)
				}
				if int64(r.Offset) >= a.next && a.names[nameOf(r.Key)] {
					records = append(records, machine.Record{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)})
				}
			}
			a.next, rest = int64(batch.NextOffset()), tail
		}
	}
}

// fetch reads __transaction_state-0 from an offset on.
func (a *apache) fetch(offset int64) []byte {
	fetch := kmsg.NewPtrFetchRequest()
	fetch.Version, fetch.MaxWaitMillis, fetch.MinBytes, fetch.MaxBytes = 11, 0, 0, 8<<20
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic = protocol.TransactionStateTopic
	partition := kmsg.NewFetchRequestTopicPartition()
	partition.FetchOffset, partition.PartitionMaxBytes = offset, 8<<20
	topic.Partitions = append(topic.Partitions, partition)
	fetch.Topics = append(fetch.Topics, topic)
	return a.ask(fetch).(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches
}

func nameOf(key []byte) string {
	decoded, err := schema.DecodeKey(schema.TransactionLog, key)
	if err != nil {
		return ""
	}
	return decoded.(*schema.TransactionLogKey).TransactionalID
}

// step runs one command on the broker.
func (a *apache) step() []answer {
	s := a.story
	a.names[s.arg("id", s.name)] = true
	var done answer
	switch s.d.Cmd {
	case "version":
		a.setVersion(int16(s.number("to", 2)))
	case "wait":
		d, err := time.ParseDuration(s.d.CmdArgs[0].Key)
		if err != nil {
			a.t.Fatal(err)
		}
		pass(d)
	default:
		times := s.number("times", 1)
		message := a.message(s.request())
		for done := 0; done < times-1; {
			batch := min(500, times-1-done)
			for range batch {
				a.send(message)
			}
			for range batch {
				a.receive(message)
			}
			done += batch
		}
		if times > 1 {
			a.records()
		}
		done = a.understand(a.ask(message))
	}
	pass(250 * time.Millisecond)
	done.records = a.records()
	return []answer{done}
}

func (a *apache) setVersion(level int16) {
	update := kmsg.NewPtrUpdateFeaturesRequest()
	update.Version, update.TimeoutMillis = 1, 10_000
	feature := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
	feature.Feature, feature.MaxVersionLevel, feature.UpgradeType = "transaction.version", level, 2
	if features := a.ask(apiVersions()).(*kmsg.ApiVersionsResponse).FinalizedFeatures; slices.ContainsFunc(features, func(f kmsg.ApiVersionsResponseFinalizedFeature) bool {
		return f.Name == feature.Feature && f.MaxVersionLevel < level
	}) || level == 2 {
		feature.UpgradeType = 1
	}
	update.FeatureUpdates = append(update.FeatureUpdates, feature)
	resp := a.ask(update).(*kmsg.UpdateFeaturesResponse)
	if resp.ErrorCode != 0 {
		a.t.Fatalf("transaction.version %d: %d %v", level, resp.ErrorCode, resp.ErrorMessage)
	}
}

func apiVersions() kmsg.Request {
	ask := kmsg.NewPtrApiVersionsRequest()
	ask.Version, ask.ClientSoftwareName, ask.ClientSoftwareVersion = 3, "oracle", "1"
	return ask
}

// message is the request of the protocol that asks for the same.
func (a *apache) message(request any) kmsg.Request {
	s := a.story
	switch r := request.(type) {
	case InitProducerID:
		m := kmsg.NewPtrInitProducerIDRequest()
		m.Version, m.TransactionalID, m.TransactionTimeoutMillis = 5, &r.TransactionalID, r.TimeoutMs
		m.ProducerID, m.ProducerEpoch = int64(r.Expected.ID), int16(r.Expected.Epoch)
		return m
	case AddPartitions:
		if s.d.Cmd == "offsets" {
			m := kmsg.NewPtrAddOffsetsToTxnRequest()
			m.Version, m.TransactionalID, m.Group = 4, r.TransactionalID, "g"
			m.ProducerID, m.ProducerEpoch = int64(r.Producer.ID), int16(r.Producer.Epoch)
			return m
		}
		return addMessage(int16(s.number("v", 5)), r.TransactionalID, r.Producer, r.Partitions, false)
	case Verify:
		return addMessage(5, r.TransactionalID, r.Producer, r.Partitions, true)
	case EndTxn:
		m := kmsg.NewPtrEndTxnRequest()
		m.Version, m.TransactionalID, m.Commit = int16(s.number("v", 5)), r.TransactionalID, r.Commit
		m.ProducerID, m.ProducerEpoch = int64(r.Producer.ID), int16(r.Producer.Epoch)
		return m
	case Describe:
		m := kmsg.NewPtrDescribeTransactionsRequest()
		m.TransactionalIDs = []string{r.TransactionalID}
		return m
	case List:
		m := kmsg.NewPtrListTransactionsRequest()
		m.Version = 2
		if s.d.HasArg("state") {
			m.StateFilters = strings.Split(s.arg("state", ""), ",")
		}
		if s.d.HasArg("pid") {
			m.ProducerIDFilters = []int64{int64(s.pid("pid"))}
		}
		if s.d.HasArg("pattern") {
			pattern := s.arg("pattern", "")
			m.TransactionalIDPattern = &pattern
		}
		return m
	}
	a.t.Fatalf("%T", request)
	return nil
}

func addMessage(version int16, id string, producer Producer, partitions []protocol.TopicPartition, verify bool) kmsg.Request {
	m := kmsg.NewPtrAddPartitionsToTxnRequest()
	m.Version = version
	if version < addsV2From {
		m.TransactionalID, m.ProducerID, m.ProducerEpoch = id, int64(producer.ID), int16(producer.Epoch)
		for _, tp := range partitions {
			m.Topics = append(m.Topics, kmsg.AddPartitionsToTxnRequestTopic{Topic: tp.Topic, Partitions: []int32{tp.Partition}})
		}
		return m
	}
	one := kmsg.NewAddPartitionsToTxnRequestTransaction()
	one.TransactionalID, one.ProducerID, one.ProducerEpoch, one.VerifyOnly = id, int64(producer.ID), int16(producer.Epoch), verify
	for _, tp := range partitions {
		one.Topics = append(one.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: tp.Topic, Partitions: []int32{tp.Partition}})
	}
	m.Transactions = append(m.Transactions, one)
	return m
}

// understand gives a response the form in which the core answers.
func (a *apache) understand(response kmsg.Response) answer {
	bad := func(code int16) answer { return answer{err: protocol.ErrorCode(code).Err()} }
	switch r := response.(type) {
	case *kmsg.InitProducerIDResponse:
		if r.ErrorCode != 0 {
			return bad(r.ErrorCode)
		}
		return answer{reply: Producer{protocol.ProducerID(r.ProducerID), protocol.ProducerEpoch(r.ProducerEpoch)}}
	case *kmsg.EndTxnResponse:
		if r.ErrorCode != 0 {
			return bad(r.ErrorCode)
		}
		return answer{reply: Producer{protocol.ProducerID(r.ProducerID), protocol.ProducerEpoch(r.ProducerEpoch)}}
	case *kmsg.AddOffsetsToTxnResponse:
		if r.ErrorCode != 0 {
			return bad(r.ErrorCode)
		}
		return answer{reply: Done{}}
	case *kmsg.AddPartitionsToTxnResponse:
		return a.understandAdd(r)
	case *kmsg.DescribeTransactionsResponse:
		state := r.TransactionStates[0]
		if state.ErrorCode != 0 {
			return bad(state.ErrorCode)
		}
		d := Described{
			TransactionalID: state.TransactionalID, State: stateOf(state.State), TimeoutMs: state.TimeoutMillis, StartMs: state.StartTimestamp,
			Producer: Producer{protocol.ProducerID(state.ProducerID), protocol.ProducerEpoch(state.ProducerEpoch)},
		}
		for _, t := range state.Topics {
			for _, n := range t.Partitions {
				d.Partitions = append(d.Partitions, protocol.TopicPartition{Topic: t.Topic, Partition: n})
			}
		}
		slices.SortFunc(d.Partitions, protocol.TopicPartition.Compare)
		return answer{reply: d}
	case *kmsg.ListTransactionsResponse:
		var all []Described
		for _, state := range r.TransactionStates {
			if a.names[state.TransactionalID] {
				all = append(all, Described{
					TransactionalID: state.TransactionalID, State: stateOf(state.TransactionState), Producer: Producer{ID: protocol.ProducerID(state.ProducerID)},
				})
			}
		}
		slices.SortFunc(all, func(a, b Described) int { return cmp.Compare(a.TransactionalID, b.TransactionalID) })
		return answer{reply: all}
	}
	a.t.Fatalf("%T", response)
	return answer{}
}

func (a *apache) understandAdd(r *kmsg.AddPartitionsToTxnResponse) answer {
	verify := a.story.d.Cmd == "verify"
	found := map[protocol.TopicPartition]protocol.ErrorCode{}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			found[protocol.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = protocol.ErrorCode(p.ErrorCode)
		}
	}
	for _, one := range r.Transactions {
		for _, t := range one.Topics {
			for _, p := range t.Partitions {
				found[protocol.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = protocol.ErrorCode(p.ErrorCode)
			}
		}
	}
	var verified Verified
	for _, tp := range a.story.partitions() {
		switch code := found[tp]; {
		case code == protocol.None:
			verified = append(verified, true)
		case verify && code == protocol.TransactionAbortable:
			verified = append(verified, false)
		default:
			return answer{err: code.Err()}
		}
	}
	if verify {
		return answer{reply: verified}
	}
	return answer{reply: Done{}}
}

func stateOf(name string) State { return State(slices.Index(stateNames, name)) }
