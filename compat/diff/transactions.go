package diff

import (
	"fmt"
	"math"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// transactionStories are the numbers 65 to 77 of the list of behaviours, and 125.
var transactionStories = []story{
	{"behaviour-065 a new epoch fences the one before", fencing},
	{"behaviour-066 the last epoch", lastEpoch},
	{"behaviour-067 a producer that knows itself", recoveries},
	{"behaviour-068 partitions that nobody has added", unadded},
	{"behaviour-069 partitions that are added by writing", implicitAdds},
	{"behaviour-070 with and without a transaction", mixed},
	{"behaviour-071 ends of transactions v1", endsOfOld},
	{"behaviour-072 ends of transactions v2", endsOfNew},
	{"behaviour-073 a transaction past its timeout", timeouts},
	{"behaviour-075 the last stable offset", lastStable},
	{"behaviour-076 aborted transactions", abortedLists},
	{"behaviour-077 offsets in a transaction", offsetsInTransactions},
	{"behaviour-077 who may commit offsets in a transaction", offsetMembers},
	{"partitions added by clients and by brokers", additions},
	{"behaviour-125 transactions listed and described", listedTransactions},
	{"behaviour-074 markers", markers}, // leaves transactions behind that nobody can end
}

// fencing: 65.
func fencing(t *Teller) {
	t.setUp(2, "x-fence")
	t.transactor("fence-warm")
	for version := int16(0); version <= 5; version++ {
		p := t.transactor(fmt.Sprintf("fence-%d", version))
		p.ends = 4
		old := *p
		resp := say[*kmsg.InitProducerIDResponse](t, "the second epoch", version, p.init())
		if resp == nil || resp.ErrorCode != 0 {
			return
		}
		p.epoch = resp.ProducerEpoch
		for v := int16(0); v <= 5; v++ {
			say[*kmsg.EndTxnResponse](t, fmt.Sprintf("%d: the old one commits", version), v, old.end(true))
			say[*kmsg.EndTxnResponse](t, fmt.Sprintf("%d: the old one aborts", version), v, old.end(false))
		}
		for v := int16(0); v <= 3; v++ {
			say[*kmsg.AddPartitionsToTxnResponse](t, fmt.Sprintf("%d: the old one adds", version), v, old.add("x-fence", 0))
		}
		for v := int16(0); v <= 4; v++ {
			say[*kmsg.AddOffsetsToTxnResponse](t, fmt.Sprintf("%d: the old one adds offsets", version), v, old.addOffsets("x-group"))
		}
		p.put("x-fence", 0, "a")
		for _, v := range []int16{3, 7, 11, 12, 13} {
			say[*kmsg.ProduceResponse](t, fmt.Sprintf("%d: the old one writes", version), v, old.send(v, "x-fence", 0, of("z").from(old.id, old.epoch, 0).with(func(b *batch) { b.attributes = 16 })))
			say[*kmsg.ProduceResponse](t, fmt.Sprintf("%d: the old one writes elsewhere", version), v, old.send(v, "x-fence", 1, of("z").from(old.id, old.epoch, 0).with(func(b *batch) { b.attributes = 16 })))
		}
		say[*kmsg.InitProducerIDResponse](t, "again, in a transaction", version, p.init())
		p.complete()
		say[*kmsg.DescribeTransactionsResponse](t, fmt.Sprintf("%d: it is aborted", version), 0, t.described(p.txid))
		say[*kmsg.EndTxnResponse](t, fmt.Sprintf("%d: the aborted one commits", version), 4, p.end(true))
		say[*kmsg.ProduceResponse](t, fmt.Sprintf("%d: the aborted one writes", version), 11, p.send(11, "x-fence", 0, p.batch("x-fence", 0, "b")))
		say[*kmsg.InitProducerIDResponse](t, "and then", version, p.init())
		t.sayLog(fmt.Sprintf("%d: the log", version), "x-fence", 0)
	}
}

// lastEpoch: 66. Thirty thousand epochs go by without being written down.
func lastEpoch(t *Teller) {
	t.setUp(1, "x-last")
	p := t.transactor("last-epoch")
	p.hurry(math.MaxInt16 - 3)
	for range 5 {
		if resp := say[*kmsg.InitProducerIDResponse](t, fmt.Sprintf("after %d", p.epoch), 5, p.init()); resp != nil && resp.ErrorCode == 0 {
			p.id, p.epoch, p.sequence = resp.ProducerID, resp.ProducerEpoch, map[string]int32{}
		}
	}
	p = t.transactor("last-epoch-in-a-transaction")
	p.hurry(math.MaxInt16 - 3)
	for i := range 4 {
		p.put("x-last", 0, fmt.Sprint(i))
		resp := say[*kmsg.EndTxnResponse](t, fmt.Sprintf("v2, after %d", p.epoch), 5, p.end(i%2 == 0))
		again := *p
		p.follow(resp)
		p.complete()
		say[*kmsg.EndTxnResponse](t, fmt.Sprintf("v2, after %d again", again.epoch), 5, again.end(i%2 == 0))
		say[*kmsg.DescribeTransactionsResponse](t, fmt.Sprintf("v2, after %d it stands", again.epoch), 0, t.described(p.txid))
	}
	t.sayLog("the log", "x-last", 0)
}

// hurry brings the producer to an epoch, with many requests on the way at a time.
func (p *producer) hurry(epoch int16) {
	client := "teller"
	const most = 200
	for sent := p.epoch; p.epoch < epoch && p.err == nil; {
		var frames []byte
		from := sent
		for ; sent < epoch && sent-from < most; sent++ {
			req := p.init()
			req.SetVersion(4)
			frames = append(frames, frameOf(req, int32(sent), &client)...)
		}
		c := p.dialed("hurry")
		if c == nil {
			return
		}
		if _, err := c.Write(frames); err != nil {
			p.fail(err)
			return
		}
		for i := from; i < sent; i++ {
			body, otherwise := p.rawAnswer("hurry", int32(i))
			if otherwise != "" {
				p.fail(fmt.Errorf("%s: %s", p.txid, otherwise))
				return
			}
			req := p.init()
			req.SetVersion(4)
			resp, bad := decode(req, body)
			if init, ok := resp.(*kmsg.InitProducerIDResponse); ok && init.ErrorCode == 0 {
				p.id, p.epoch = init.ProducerID, init.ProducerEpoch
			} else {
				p.fail(fmt.Errorf("%s at epoch %d: %s", p.txid, p.epoch, p.told(resp, bad)))
				return
			}
		}
		sent = p.epoch
	}
	p.sequence = map[string]int32{}
}

// recoveries: 67 (KIP-360).
func recoveries(t *Teller) {
	t.setUp(1, "x-recover")
	for version := int16(3); version <= 5; version++ {
		p := t.transactor(fmt.Sprintf("recover-%d", version))
		other := t.transactor(fmt.Sprintf("recover-other-%d", version))
		first := *p
		for _, c := range []struct {
			what  string
			id    int64
			epoch int16
		}{
			{"its own", p.id, 0},
			{"its own again, of before", p.id, 0},
			{"the epoch now", p.id, 1},
			{"the epoch before", p.id, 1},
			{"two before", p.id, 0},
			{"an epoch to come", p.id, 9},
			{"another producer", other.id, 0},
			{"a producer that is none", 7_000_000, 0},
			{"an id without an epoch", p.id, -1},
			{"an epoch without an id", -1, 2},
			{"neither", -1, -1},
		} {
			say[*kmsg.InitProducerIDResponse](t, c.what, version, p.known(c.id, c.epoch))
		}
		first.txid = fmt.Sprintf("recover-unheard-of-%d", version)
		say[*kmsg.InitProducerIDResponse](t, "an id that nobody has heard of", version, first.known(p.id, 3))
		first.txid = fmt.Sprintf("recover-unheard-of-either-%d", version)
		say[*kmsg.InitProducerIDResponse](t, "an id that nobody has heard of, of nobody", version, first.known(8_000_000, 3))
		p.begin()
		p.put("x-recover", 0, "a")
		say[*kmsg.InitProducerIDResponse](t, "in a transaction, an epoch too low", version, p.known(p.id, p.epoch-1))
		p.complete()
		say[*kmsg.InitProducerIDResponse](t, "in a transaction, its own", version, p.known(p.id, p.epoch))
		p.complete()
		say[*kmsg.InitProducerIDResponse](t, "in a transaction, its own again", version, p.known(p.id, p.epoch))
		p.begin()
		p.put("x-recover", 0, "b")
		before := *p
		p.finish(true)
		say[*kmsg.InitProducerIDResponse](t, "after an end, of before it", version, before.known(before.id, before.epoch))
		say[*kmsg.InitProducerIDResponse](t, "after an end, its own", version, p.known(p.id, p.epoch))
	}
	for _, version := range []int16{0, 4, 5} {
		for _, timeout := range []int32{0, -1, 1, 900_000, 900_001, math.MaxInt32} {
			p := &producer{Teller: t, txid: fmt.Sprintf("recover-timeout-%d-%d", version, timeout), timeout: timeout}
			if timeout > 0 && timeout <= 900_000 {
				p.begin()
			}
			say[*kmsg.InitProducerIDResponse](t, fmt.Sprintf("behaviour-060 a timeout of %d", timeout), version, p.init())
		}
	}
}

// unadded: 68.
func unadded(t *Teller) {
	t.setUp(3, "x-unadded")
	for version := int16(3); version <= 11; version++ {
		p := t.transactor(fmt.Sprintf("unadded-%d", version))
		p.ends = 4
		say[*kmsg.ProduceResponse](t, "no transaction", version, p.send(version, "x-unadded", 0, p.batch("x-unadded", 0, "a")))
		p.put("x-unadded", 1, "b")
		p.sequence["x-unadded0"] = 0
		say[*kmsg.ProduceResponse](t, "another partition is added", version, p.send(version, "x-unadded", 0, p.batch("x-unadded", 0, "a")))
		say[*kmsg.ProduceResponse](t, "the one that is", version, p.send(version, "x-unadded", 1, p.batch("x-unadded", 1, "c")))
		two := p.send(version, "x-unadded", 1, p.batch("x-unadded", 1, "d"))
		two.Topics[0].Partitions = append(two.Topics[0].Partitions, p.send(version, "x-unadded", 2, p.batch("x-unadded", 2, "a")).Topics[0].Partitions...)
		say[*kmsg.ProduceResponse](t, "one that is and one that is not", version, two)
		stranger := *p
		stranger.txid = "unadded-nobody"
		say[*kmsg.ProduceResponse](t, "of a transactional id that there is not", version, stranger.send(version, "x-unadded", 2, of("a").from(p.id, p.epoch, 0).with(func(b *batch) { b.attributes = 16 })))
		say[*kmsg.ProduceResponse](t, "of a producer that is not this one's", version, p.send(version, "x-unadded", 2, of("a").from(5_000_000, 0, 0).with(func(b *batch) { b.attributes = 16 })))
		p.finish(version%2 == 0)
		say[*kmsg.ProduceResponse](t, "after the end", version, p.send(version, "x-unadded", 1, p.batch("x-unadded", 1, "e")))
		say[*kmsg.DescribeTransactionsResponse](t, fmt.Sprintf("%d: how it stands", version), 0, t.described(p.txid))
	}
	t.sayLog("partition 0", "x-unadded", 0)
	t.sayLog("partition 1", "x-unadded", 1)
}

// implicitAdds: 69.
func implicitAdds(t *Teller) {
	t.setUp(3, "x-implicit")
	for version := int16(12); version <= 13; version++ {
		p := t.transactor(fmt.Sprintf("implicit-%d", version))
		other := t.transactor(fmt.Sprintf("implicit-other-%d", version))
		say[*kmsg.ProduceResponse](t, "the first", version, p.send(version, "x-implicit", 0, p.batch("x-implicit", 0, "a")))
		say[*kmsg.DescribeTransactionsResponse](t, fmt.Sprintf("%d: it is added", version), 0, t.described(p.txid))
		say[*kmsg.ProduceResponse](t, "another", version, p.send(version, "x-implicit", 0, p.batch("x-implicit", 0, "b")))
		two := p.send(version, "x-implicit", 1, p.batch("x-implicit", 1, "c"))
		two.Topics[0].Partitions = append(two.Topics[0].Partitions, p.send(version, "x-implicit", 2, p.batch("x-implicit", 2, "d")).Topics[0].Partitions...)
		say[*kmsg.ProduceResponse](t, "two partitions", version, two)
		wrong := func(what string, txid string, id int64, epoch int16, topic string, partition, sequence int32) {
			req := t.producing(version, topic, partition, of("z").from(id, epoch, sequence).with(func(b *batch) { b.attributes = 16 }).bytes())
			req.TransactionID = &txid
			say[*kmsg.ProduceResponse](t, what, version, req)
		}
		wrong("another's producer id", p.txid, other.id, 0, "x-implicit", 0, 0)
		wrong("another's transactional id", other.txid, p.id, p.epoch, "x-implicit", 0, 2)
		wrong("a producer that there is not", p.txid, 5_000_000, 0, "x-implicit", 0, 0)
		wrong("a transactional id that there is not", "implicit-nobody", p.id, p.epoch, "x-implicit", 0, 2)
		wrong("an empty transactional id", "", p.id, p.epoch, "x-implicit", 0, 2)
		wrong("an epoch to come", p.txid, p.id, p.epoch+1, "x-implicit", 0, 0)
		wrong("no such topic", p.txid, p.id, p.epoch, "x-none", 0, 0)
		wrong("no such partition", p.txid, p.id, p.epoch, "x-implicit", 9, 0)
		wrong("a gap", p.txid, p.id, p.epoch, "x-implicit", 0, 9)
		wrong("another that does not begin at 0", other.txid, other.id, other.epoch, "x-implicit", 0, 5)
		say[*kmsg.DescribeTransactionsResponse](t, fmt.Sprintf("%d: what is added now", version), 0, t.described(p.txid, other.txid))
		for range 2 {
			p.finish(false)
			say[*kmsg.ProduceResponse](t, fmt.Sprintf("epoch %d does not begin at 0", p.epoch), version, p.send(version, "x-implicit", 1, of("z").from(p.id, p.epoch, 3).with(func(b *batch) { b.attributes = 16 })))
			say[*kmsg.ProduceResponse](t, fmt.Sprintf("epoch %d begins", p.epoch), version, p.send(version, "x-implicit", 0, p.batch("x-implicit", 0, "e")))
		}
		p.finish(true)
		other.finish(false)
		for partition := range int32(3) {
			t.sayLog(fmt.Sprintf("%d: partition %d", version, partition), "x-implicit", partition)
		}
	}
}

// mixed: 70.
func mixed(t *Teller) {
	t.setUp(3, "x-mixed")
	for _, version := range []int16{7, 11, 12, 13} {
		p := t.transactor(fmt.Sprintf("mixed-%d", version))
		if version < 12 {
			p.ends = 4
		}
		plain := func(what string, partition int32, values ...string) {
			b := p.batch("x-mixed", partition, values...).with(func(b *batch) { b.attributes = 0 })
			say[*kmsg.ProduceResponse](t, what, version, t.producing(version, "x-mixed", partition, b.bytes()))
			say[*kmsg.ProduceResponse](t, what+", and says whose it is", version, p.send(version, "x-mixed", partition, b))
		}
		p.put("x-mixed", 0, "a")
		plain("plain, into a transaction", 0, "b")
		plain("plain, beside a transaction", 1, "c")
		two := p.send(version, "x-mixed", 0, of("d").from(p.id, p.epoch, 1).with(func(b *batch) { b.attributes = 16 }))
		two.Topics[0].Partitions = append(two.Topics[0].Partitions, t.producing(version, "x-mixed", 1, of("e").bytes()).Topics[0].Partitions...)
		say[*kmsg.ProduceResponse](t, "one plain, one in the transaction", version, two)
		nobody := t.producing(version, "x-mixed", 1, of("f").from(p.id, p.epoch, 1).with(func(b *batch) { b.attributes = 16 }).bytes())
		say[*kmsg.ProduceResponse](t, "in a transaction, without a transactional id", version, nobody)
		p.finish(true)
		plain("plain, after the transaction", 0, "g")
		say[*kmsg.ProduceResponse](t, "nobody's, marked transactional", version, p.send(version, "x-mixed", 2, of("h").with(func(b *batch) { b.attributes = 16 })))
		say[*kmsg.ProduceResponse](t, "a control batch", version, p.send(version, "x-mixed", 1, of("h").from(p.id, p.epoch, 0).with(func(b *batch) { b.attributes = 48 })))
		t.sayLog(fmt.Sprintf("%d: partition 0", version), "x-mixed", 0)
		t.sayLog(fmt.Sprintf("%d: partition 1", version), "x-mixed", 1)
	}
}

// endsOfOld: 71.
func endsOfOld(t *Teller) {
	t.setUp(1, "x-old")
	for version := int16(0); version <= 4; version++ {
		p := t.transactor(fmt.Sprintf("old-%d", version))
		p.ends = version
		end := func(what string, commit bool) {
			say[*kmsg.EndTxnResponse](t, fmt.Sprintf("%s, commit %v", what, commit), version, p.end(commit))
		}
		stands := func(what string) {
			p.complete()
			say[*kmsg.DescribeTransactionsResponse](t, fmt.Sprintf("%d: %s", version, what), 0, t.described(p.txid))
		}
		end("nothing is open", true)
		end("nothing is open", false)
		for _, commit := range []bool{true, false} {
			p.put("x-old", 0, "a")
			end("ended", commit)
			stands(fmt.Sprintf("committed %v", commit))
			end("again", commit)
			end("the other way", !commit)
			stands(fmt.Sprintf("committed %v, after that", commit))
		}
		p.quiet(func() []int16 {
			return codesOf(secret[*kmsg.AddPartitionsToTxnResponse](t, "setup", 3, p.add("x-old", 0)))
		})
		end("nothing written", true)
		stands("nothing written")
		p.put("x-old", 0, "b")
		say[*kmsg.EndTxnResponse](t, "an epoch to come", version, func() *kmsg.EndTxnRequest { q := *p; q.epoch += 5; return q.end(true) }())
		say[*kmsg.EndTxnResponse](t, "another producer id", version, func() *kmsg.EndTxnRequest { q := *p; q.id = 5_000_000; return q.end(true) }())
		say[*kmsg.EndTxnResponse](t, "another transactional id", version, func() *kmsg.EndTxnRequest { q := *p; q.txid = "old-nobody"; return q.end(true) }())
		p.finish(false)
	}
	t.sayLog("the log", "x-old", 0)
}

// endsOfNew: 72.
func endsOfNew(t *Teller) {
	t.setUp(1, "x-new")
	p := t.transactor("new")
	end := func(what string, q producer, commit bool) *kmsg.EndTxnResponse {
		return say[*kmsg.EndTxnResponse](t, fmt.Sprintf("%s, commit %v", what, commit), 5, q.end(commit))
	}
	stands := func(what string) {
		p.complete()
		say[*kmsg.DescribeTransactionsResponse](t, what, 0, t.described(p.txid))
	}
	end("nothing is open", *p, true)
	before := *p
	p.follow(end("nothing is open", *p, false))
	p.complete()
	end("nothing was open, again", before, false)
	end("nothing was open, again", before, true)
	stands("nothing was open")
	for i, commit := range []bool{true, false, false, true} {
		p.put("x-new", 0, fmt.Sprint("a", i))
		before := *p
		p.follow(end(fmt.Sprintf("ended %d", i), *p, commit))
		stands(fmt.Sprintf("ended %d, commit %v", i, commit))
		end(fmt.Sprintf("again %d, the old epoch", i), before, commit)
		end(fmt.Sprintf("the other way %d, the old epoch", i), before, !commit)
		end(fmt.Sprintf("again %d, the new epoch", i), *p, true) // there is nothing to commit
		stands(fmt.Sprintf("after that %d", i))
	}
	next := *p
	next.epoch += 3
	end("an epoch to come", next, true)
	say[*kmsg.EndTxnResponse](t, "as of transactions v1", 4, p.end(true))
	say[*kmsg.EndTxnResponse](t, "as of transactions v1, aborted", 4, p.end(false))
	p.begin()
	p.put("x-new", 0, "v1 ends what v2 began")
	say[*kmsg.EndTxnResponse](t, "v1 ends what v2 began", 4, p.end(true))
	stands("v1 ended what v2 began")
	p.begin()
	p.ends = 4
	p.put("x-new", 0, "v2 ends what v1 began")
	say[*kmsg.EndTxnResponse](t, "v2 ends what v1 began", 5, p.end(true))
	stands("v2 ended what v1 began")
	t.sayLog("the log", "x-new", 0)
}

// timeouts: 73. The book's settings have the coordinator look every half second.
func timeouts(t *Teller) {
	t.setUp(1, "x-timeout")
	for _, ends := range []int16{4, 5} {
		p := &producer{Teller: t, txid: fmt.Sprintf("timeout-%d", ends), ends: ends, timeout: 1000, sequence: map[string]int32{}}
		p.begin()
		name := func(what string) string { return fmt.Sprintf("v%d: %s", ends-3, what) }
		p.put("x-timeout", 0, "a")
		p.aborted()
		say[*kmsg.DescribeTransactionsResponse](t, name("aborted"), 0, t.described(p.txid))
		for _, version := range []int16{11, 12} {
			say[*kmsg.ProduceResponse](t, name("it writes"), version, p.send(version, "x-timeout", 0, of("b").from(p.id, p.epoch, 1).with(func(b *batch) { b.attributes = 16 })))
		}
		for _, version := range []int16{1, 4, 5} {
			say[*kmsg.EndTxnResponse](t, name("it commits"), version, p.end(true))
			say[*kmsg.EndTxnResponse](t, name("it aborts"), version, p.end(false))
		}
		say[*kmsg.AddPartitionsToTxnResponse](t, name("it adds"), 3, p.add("x-timeout", 0))
		say[*kmsg.InitProducerIDResponse](t, name("a new epoch for the one it knows"), 5, p.known(p.id, p.epoch))
		say[*kmsg.InitProducerIDResponse](t, name("a new epoch"), 5, p.init())
		say[*kmsg.DescribeTransactionsResponse](t, name("then"), 0, t.described(p.txid))
	}
	t.sayLog("the log", "x-timeout", 0)
}

// markers: 74. A client may say what coordinators say, where nothing is authorized.
func markers(t *Teller) {
	t.setUp(2, "x-markers")
	marker := func(id int64, epoch int16, commit bool, coordinator int32, version int8, partitions ...int32) *kmsg.WriteTxnMarkersRequest {
		req := kmsg.NewPtrWriteTxnMarkersRequest()
		req.Markers = []kmsg.WriteTxnMarkersRequestMarker{{
			ProducerID: id, ProducerEpoch: epoch, Committed: commit, CoordinatorEpoch: coordinator, TransactionVersion: version,
			Topics: []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: "x-markers", Partitions: partitions}},
		}}
		return req
	}
	for _, ends := range []int16{4, 5} {
		for _, version := range []int16{1, 2} {
			p := t.transactor(fmt.Sprintf("markers-%d-%d", ends, version)) // its own coordinator is fenced from then on
			p.ends = ends
			transaction := int8(0)
			if version == 2 {
				transaction = int8(ends - 3)
			}
			name := func(what string) string { return fmt.Sprintf("v%d: %s", ends-3, what) }
			write := func(what string, epoch int16, commit bool, coordinator int32, partitions ...int32) {
				say[*kmsg.WriteTxnMarkersResponse](t, name(what), version, marker(p.id, epoch, commit, coordinator, transaction, partitions...))
			}
			p.put("x-markers", 0, "a", "b")
			write("an epoch too low", p.epoch-1, true, 0, 0)
			write("no such partition", p.epoch, true, 0, 7)
			write("an abort with its epoch", p.epoch, false, 3, 0)
			write("an abort with the next epoch", p.epoch+1, false, 3, 0)
			t.sayLog(name(fmt.Sprintf("by version %d", version)), "x-markers", 0)
			write("again", p.epoch+1, false, 3, 0)
			write("of a coordinator before", p.epoch+1, false, 2, 0)
			write("to a partition without its producer", p.epoch+1, true, 0, 1)
			t.sayLog(name(fmt.Sprintf("by version %d, the other", version)), "x-markers", 1)
			say[*kmsg.DescribeProducersResponse](t, name(fmt.Sprintf("by version %d, the producers", version)), 0, &kmsg.DescribeProducersRequest{Topics: []kmsg.DescribeProducersRequestTopic{{Topic: "x-markers", Partitions: []int32{0, 1}}}})
		}
	}
}

// lastStable: 75.
func lastStable(t *Teller) {
	t.setUp(1, "x-stable")
	old, fresh := t.transactor("stable-old"), t.transactor("stable-fresh")
	old.ends, old.today, fresh.today = 4, true, true // markers of now behind records of years ago begin a new segment, and Apache Kafka then misses some by time
	plain := func(value string) {
		t.write("x-stable", of(value).with(func(b *batch) { b.timestamp = anHourAgo() }))
	}
	look := func(what string) {
		for _, version := range []int16{2, 5, 7, 11} {
			for isolation := range int8(2) {
				for _, at := range []int64{-1, -2, -3, someTime, someTime + 1} {
					if at == -3 && version < 7 {
						continue
					}
					req := listOf(t, "x-stable", at)
					req.IsolationLevel = isolation
					say[*kmsg.ListOffsetsResponse](t, fmt.Sprintf("%s, isolation %d, at %d", what, isolation, at), version, req)
				}
			}
		}
		for _, version := range []int16{4, 11, 12, 13, 18} {
			for isolation := range int8(2) {
				for _, from := range []int64{0, 1, 3, 20} {
					req := fetchOf(t, version, "x-stable", 0, from)
					req.IsolationLevel = isolation
					say[*kmsg.FetchResponse](t, fmt.Sprintf("%s, isolation %d, from %d", what, isolation, from), version, req)
				}
			}
		}
	}
	plain("plain")
	old.put("x-stable", 0, "a", "b")
	look("one open")
	fresh.put("x-stable", 0, "c")
	plain("plain again")
	fresh.finish(true)
	look("the later one committed")
	fresh.put("x-stable", 0, "d")
	pause() // markers have different times
	old.finish(false)
	look("the earlier one aborted")
	pause()
	fresh.finish(false)
	look("none open")
	trim := &kmsg.DeleteRecordsRequest{TimeoutMillis: 10_000, Topics: []kmsg.DeleteRecordsRequestTopic{{Topic: "x-stable", Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Offset: 4}}}}}
	old.put("x-stable", 0, "e")
	say[*kmsg.DeleteRecordsResponse](t, "deleted up to 4", 2, trim)
	trim.Topics[0].Partitions[0].Offset = -1
	say[*kmsg.DeleteRecordsResponse](t, "deleted up to the high watermark", 2, trim)
	look("all deleted, one open")
	pause()
	old.finish(true)
	look("all deleted, none open")
}

// abortedLists: 76.
func abortedLists(t *Teller) {
	t.setUp(1, "x-aborted")
	var list []*producer
	for i := range 5 {
		p := t.transactor(fmt.Sprintf("aborted-%d", i))
		if i%2 == 1 {
			p.ends = 4
		}
		list = append(list, p)
	}
	for round := range 2 {
		for i, p := range list {
			p.put("x-aborted", 0, fmt.Sprintf("%d of %d", round, i))
		}
		t.write("x-aborted", of("plain"))
		for i := range list { // in another order than they began
			list[(i*3+4)%5].finish((i*3+4)%5 == 2+round)
		}
	}
	list[0].put("x-aborted", 0, "open")
	for _, version := range []int16{4, 5, 7, 11, 12, 13, 18} {
		for isolation := range int8(2) {
			for _, from := range []int64{0, 1, 4, 6, 8, 11, 13, 17, 21, 22, 23, 24, -1} {
				for _, most := range []int32{1 << 20, 1, 200} {
					if most < 1<<20 && from != 0 && from != 6 {
						continue
					}
					req := fetchOf(t, version, "x-aborted", 0, from)
					req.IsolationLevel = isolation
					req.Topics[0].Partitions[0].PartitionMaxBytes = most
					say[*kmsg.FetchResponse](t, fmt.Sprintf("isolation %d, from %d, at most %d bytes", isolation, from, most), version, req)
				}
			}
		}
	}
	raw := fetchOf(t, 12, "x-aborted", 0, 0)
	raw.IsolationLevel = 1
	var order []string
	for _, topic := range secret[*kmsg.FetchResponse](t, "a", 12, raw).Topics {
		for _, a := range topic.Partitions[0].AbortedTransactions {
			order = append(order, fmt.Sprint(a.FirstOffset))
		}
	}
	t.note("as they are listed", strings.Join(order, " "))
	// A reader of committed data waits, and what it waits for is an abort.
	req := fetchOf(t, 12, "x-aborted", 0, 22)
	req.IsolationLevel, req.MaxWaitMillis = 1, 60_000
	req.SetVersion(12)
	client := "teller"
	c := t.dialed("waits")
	if c == nil {
		return
	}
	if _, err := c.Write(frameOf(req, 9, &client)); err != nil {
		t.fail(err)
		return
	}
	for range 4 {
		pause()
	}
	list[0].finish(false)
	body, otherwise := t.rawAnswer("waits", 9)
	if otherwise == "" {
		resp, bad := decode(req, body)
		if fetched, ok := resp.(*kmsg.FetchResponse); ok && len(fetched.Topics) > 0 {
			part := fetched.Topics[0].Partitions[0]
			// how much of it is there when the fetch wakes is a matter of the moment
			var aborted []string
			for _, a := range part.AbortedTransactions {
				aborted = append(aborted, fmt.Sprintf("%d from %d", t.alias(a.ProducerID), a.FirstOffset))
			}
			otherwise = fmt.Sprintf("aborted: %s %s", strings.Join(aborted, ", "), bad)
		}
	}
	t.note("one who waits for it", otherwise)
}
