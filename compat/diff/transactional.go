package diff

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// producer is a transactional producer as the teller plays it: what it would say of itself.
type producer struct {
	*Teller
	txid     string
	id       int64
	epoch    int16
	sequence map[string]int32 // of the next batch, by topic and partition
	ends     int16            // the version of its EndTxn: 5 is transactions v2 (KIP-890)
	timeout  int32
	today    bool // its records are of an hour ago
}

// transactor gives a producer with a transactional id, a producer id and an epoch.
func (t *Teller) transactor(txid string) *producer {
	p := &producer{Teller: t, txid: txid, id: -1, epoch: -1, ends: 5, timeout: 60_000, sequence: map[string]int32{}}
	p.begin()
	return p
}

// begin gives the producer a new epoch, without writing down. Who asks first has the topic of transactions made.
func (p *producer) begin() {
	for range 600 {
		secret[*kmsg.FindCoordinatorResponse](p.Teller, "setup", 3, coordinatorOf(3, 1, p.txid))
		resp := secret[*kmsg.InitProducerIDResponse](p.Teller, "setup", 4, p.init())
		if p.err != nil {
			return
		}
		if resp != nil && resp.ErrorCode == 0 {
			p.id, p.epoch, p.sequence = resp.ProducerID, resp.ProducerEpoch, map[string]int32{}
			p.alias(p.id)
			return
		}
		pause()
	}
	p.fail(fmt.Errorf("no producer id for %s", p.txid))
}

// init asks for a new epoch as one who has just started.
func (p *producer) init() *kmsg.InitProducerIDRequest {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &p.txid, p.timeout, -1, -1
	return req
}

// known asks for a new epoch as one who has an id and an epoch (KIP-360).
func (p *producer) known(id int64, epoch int16) *kmsg.InitProducerIDRequest {
	req := p.init()
	req.ProducerID, req.ProducerEpoch = id, epoch
	return req
}

// add asks for partitions of a topic to be part of the transaction, as clients do before transactions v2.
func (p *producer) add(topic string, partitions ...int32) *kmsg.AddPartitionsToTxnRequest {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = p.txid, p.id, p.epoch
	req.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: topic, Partitions: partitions}}
	return req
}

// adding is the same as a broker says it.
func (p *producer) adding(verify bool, topic string, partitions ...int32) kmsg.AddPartitionsToTxnRequestTransaction {
	return kmsg.AddPartitionsToTxnRequestTransaction{
		TransactionalID: p.txid, ProducerID: p.id, ProducerEpoch: p.epoch, VerifyOnly: verify,
		Topics: []kmsg.AddPartitionsToTxnRequestTransactionTopic{{Topic: topic, Partitions: partitions}},
	}
}

// batch is the producer's next one for a partition.
func (p *producer) batch(topic string, partition int32, values ...string) batch {
	key := fmt.Sprint(topic, partition)
	b := of(values...).from(p.id, p.epoch, p.sequence[key]).with(func(b *batch) { b.attributes = 16 })
	p.sequence[key] += int32(len(values))
	if p.today {
		b.timestamp = anHourAgo()
	}
	return b
}

func anHourAgo() int64 { return time.Now().Add(-time.Hour).UnixMilli() }

// send is a Produce of a batch that says whose it is.
func (p *producer) send(version int16, topic string, partition int32, b batch) *kmsg.ProduceRequest {
	req := p.producing(version, topic, partition, b.bytes())
	req.TransactionID = &p.txid
	return req
}

// put writes in the transaction, without writing down.
func (p *producer) put(topic string, partition int32, values ...string) {
	if p.ends < 5 {
		p.quiet(func() []int16 {
			resp := secret[*kmsg.AddPartitionsToTxnResponse](p.Teller, "setup", 3, p.add(topic, partition))
			return codesOf(resp)
		})
	}
	b := p.batch(topic, partition, values...)
	version := int16(12)
	if p.ends < 5 {
		version = 11
	}
	p.quiet(func() []int16 {
		return codesOf(secret[*kmsg.ProduceResponse](p.Teller, "setup", version, p.send(version, topic, partition, b)))
	})
}

// quiet asks until there is no error.
func (p *producer) quiet(ask func() []int16) {
	var codes []int16
	for range 600 {
		codes = ask()
		if p.err != nil || len(codes) > 0 && !slices.ContainsFunc(codes, func(c int16) bool { return c != 0 }) {
			return
		}
		pause()
	}
	p.fail(fmt.Errorf("%s: errors %v", p.txid, codes))
}

// end is EndTxn.
func (p *producer) end(commit bool) *kmsg.EndTxnRequest {
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = p.txid, p.id, p.epoch, commit
	return req
}

// finish ends the transaction, without writing down, and waits until all its markers are there.
func (p *producer) finish(commit bool) {
	p.quiet(func() []int16 {
		resp := secret[*kmsg.EndTxnResponse](p.Teller, "setup", p.ends, p.end(commit))
		if resp != nil && resp.ErrorCode == 0 && p.ends >= 5 {
			p.follow(resp)
		}
		return codesOf(resp)
	})
	p.complete()
}

// follow takes what the answer to an EndTxn of transactions v2 brings.
func (p *producer) follow(resp *kmsg.EndTxnResponse) {
	if resp != nil && resp.ErrorCode == 0 && resp.ProducerID >= 0 {
		p.id, p.epoch, p.sequence = resp.ProducerID, resp.ProducerEpoch, map[string]int32{}
		p.alias(p.id)
	}
}

// described asks how a transaction stands.
func (t *Teller) described(txids ...string) *kmsg.DescribeTransactionsRequest {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = txids
	return req
}

// complete waits until the coordinator has nothing more to do for a transaction: who asks meanwhile is told to try again, or not.
func (p *producer) complete() {
	state := ""
	for range 600 {
		resp := secret[*kmsg.DescribeTransactionsResponse](p.Teller, "setup", 0, p.described(p.txid))
		if p.err != nil {
			return
		}
		if resp != nil && len(resp.TransactionStates) == 1 {
			s := resp.TransactionStates[0]
			state = s.State
			if s.ErrorCode == 0 && !strings.HasPrefix(state, "Prepare") {
				return
			}
		}
		pause()
	}
	p.fail(fmt.Errorf("the transaction of %s stays %q", p.txid, state))
}

// aborted waits until the coordinator has ended a transaction by itself.
func (p *producer) aborted() {
	for range 1200 {
		resp := secret[*kmsg.DescribeTransactionsResponse](p.Teller, "setup", 0, p.described(p.txid))
		if p.err != nil || resp != nil && len(resp.TransactionStates) == 1 && resp.TransactionStates[0].State == "CompleteAbort" {
			return
		}
		pause()
	}
	p.fail(fmt.Errorf("nobody aborts the transaction of %s", p.txid))
}

// codesOf gives every ErrorCode of a response.
func codesOf(resp kmsg.Response) (codes []int16) {
	if v := reflect.ValueOf(resp); resp != nil && !v.IsNil() {
		collectCodes(v.Elem(), &codes)
	}
	return codes
}

func collectCodes(v reflect.Value, codes *[]int16) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name == "ErrorCode" {
				*codes = append(*codes, int16(v.Field(i).Int()))
				continue
			}
			collectCodes(v.Field(i), codes)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				collectCodes(v.Index(i), codes)
			}
		}
	}
}

// alias gives the number by which a producer id is shown: 1001 and so on, in the order in which they are first mentioned.
func (t *Teller) alias(id int64) int64 {
	if id < 0 || id >= strangeProducers {
		return id
	}
	shown, known := t.producers[id]
	if !known {
		shown = int64(firstAlias + len(t.producers))
		t.producers[id] = shown
	}
	return shown
}

const (
	// strangeProducers and what is above are ids that no server has given.
	strangeProducers = 1_000_000
	firstAlias       = 900_000_001
)

// say asks and writes down what a story of transactions is told: producer ids by their aliases, times not at all. The response
// itself stays as it is.
func say[R kmsg.Response](t *Teller, name string, version int16, req kmsg.Request) R {
	return sayOn[R](t, name, "a", version, req)
}

func sayOn[R kmsg.Response](t *Teller, name, on string, version int16, req kmsg.Request) R {
	req.SetVersion(version)
	resp, otherwise := t.exchange(on, req)
	got, _ := resp.(R)
	if resp != nil {
		shown := req.ResponseKind()
		shown.SetVersion(version)
		reflect.ValueOf(shown).Elem().Set(deep(reflect.ValueOf(resp).Elem()))
		if fetched, ok := shown.(*kmsg.FetchResponse); ok {
			needed(fetched)
		}
		t.aliased(reflect.ValueOf(shown).Elem())
		resp = shown
	}
	t.note(fmt.Sprintf("%s: %s %d", name, kmsg.NameForKey(req.Key()), version), t.told(resp, otherwise))
	return got
}

// needed leaves of the aborted transactions those that what was fetched is part of, in the order in which they began: Apache Kafka may
// list more, as far as its index is coarse, and lists them in the order of their markers (DIFFERENCES 12).
func needed(resp *kmsg.FetchResponse) {
	for _, topic := range resp.Topics {
		for i := range topic.Partitions {
			p := &topic.Partitions[i]
			last := int64(-1)
			for rest := p.RecordBatches; len(rest) > 0; {
				var b kmsg.RecordBatch
				if b.ReadFrom(rest) != nil {
					break
				}
				last, rest = b.FirstOffset+int64(b.LastOffsetDelta), rest[12+int(b.Length):]
			}
			p.AbortedTransactions = slices.DeleteFunc(p.AbortedTransactions, func(a kmsg.FetchResponseTopicPartitionAbortedTransaction) bool { return a.FirstOffset > last })
			slices.SortFunc(p.AbortedTransactions, func(a, b kmsg.FetchResponseTopicPartitionAbortedTransaction) int {
				return cmp.Compare(a.FirstOffset, b.FirstOffset)
			})
		}
	}
}

// aliased replaces every producer id in a response, and every time of today.
func (t *Teller) aliased(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			switch f := v.Field(i); v.Type().Field(i).Name {
			case "ProducerID":
				f.SetInt(t.alias(f.Int()))
			case "StartTimestamp", "LastTimestamp":
				f.SetInt(min(f.Int(), 1))
			case "Timestamp":
				if f.Int() > someTime+1_000_000 {
					f.SetInt(1)
				}
			case "RecordBatches":
				if f.Len() > 0 {
					f.SetBytes([]byte(strings.Join(t.batches(f.Bytes()), "; ")))
				}
			default:
				t.aliased(f)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				t.aliased(v.Index(i))
			}
		}
	}
}

// batches tells the batches of a fetch: their headers but for time and checksum, and their records. Apache Kafka cuts off a last batch
// for which there is no room, where Ottla leaves it out; readers pass over it, and so does this.
func (t *Teller) batches(raw []byte) (list []string) {
	for len(raw) > 0 {
		var b kmsg.RecordBatch
		if err := b.ReadFrom(raw); err != nil {
			break
		}
		text := fmt.Sprintf("%d+%d epoch %d attributes %d producer %d:%d sequence %d", b.FirstOffset, b.LastOffsetDelta, b.PartitionLeaderEpoch, b.Attributes, t.alias(b.ProducerID), b.ProducerEpoch, b.FirstSequence)
		if b.Attributes&7 == 0 {
			for records := b.Records; len(records) > 0; {
				var r kmsg.Record
				if err := r.ReadFrom(records); err != nil {
					text += " (records that cannot be read)"
					break
				}
				text += fmt.Sprintf(" %x=%x", r.Key, r.Value)
				records = records[len(r.AppendTo(nil)):]
			}
		}
		list = append(list, text)
		raw = raw[12+int(b.Length):]
	}
	return list
}

// sayLog tells a partition as both kinds of reader see it.
func (t *Teller) sayLog(name, topic string, partition int32) {
	for isolation := range int8(2) {
		req := fetchOf(t, 12, topic, partition, 0)
		req.IsolationLevel = isolation
		say[*kmsg.FetchResponse](t, fmt.Sprintf("%s, isolation %d", name, isolation), 12, req)
	}
}
