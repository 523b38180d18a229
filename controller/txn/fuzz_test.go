package txn

import (
	"runtime"
	"testing"
	"time"

	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// FuzzReplay: no record of the log makes the core panic, while it replays and when it then goes on: takes over the id, lets
// time pass, and is replayed again. Reading one stays within its budget.
func FuzzReplay(f *testing.F) {
	for _, state := range []State{Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort} {
		value := schema.NewTransactionLogValue()
		value.ProducerID, value.ProducerEpoch, value.TransactionTimeoutMs, value.TransactionStatus = 7, 3, 60_000, int8(state)
		value.TransactionPartitions = []schema.TransactionLogPartitionsSchema{{Topic: "t", PartitionIDs: []int32{0, 2}}, {Topic: "u", PartitionIDs: []int32{1}}}
		key := schema.NewTransactionLogKey()
		key.TransactionalID = "id"
		for version := range int16(2) {
			f.Add(schema.AppendKey(nil, key), schema.AppendValue(nil, value, version))
		}
	}
	f.Add([]byte{0, 0, 0, 1, 'x'}, []byte(nil))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		options := Options{Settings: settings(), Version: func() int16 { return Version2 }}
		records := []machine.Record{{Key: key, Value: value}}
		c := New(options)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := c.Apply(0, 0, 0, records)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(64*(len(key)+len(value))+64<<10) {
			t.Errorf("%d bytes were allocated for %d", used, len(key)+len(value))
		}
		if err != nil {
			return
		}
		next := protocol.Offset(1)
		turn := machine.Turn{Now: began, Next: next}
		take := func(result machine.Result, err error) {
			if err != nil {
				return // refused: nothing has changed
			}
			if err := c.Apply(turn.Next, 1, turn.Now.UnixMilli(), result.Records); err != nil {
				t.Fatal(err)
			}
			records = append(records, result.Records...)
			turn.Next += protocol.Offset(len(result.Records))
			c.Committed(turn.Next)
		}
		take(c.Activate(turn, 1))
		for id := range c.transactions {
			take(c.Handle(turn, InitProducerID{TransactionalID: id, TimeoutMs: 60_000, Expected: NoProducer, Drawn: 4711}))
		}
		for range 30 {
			turn.Now = turn.Now.Add(30 * time.Minute)
			take(c.Tick(turn))
		}
		if err := New(options).Apply(0, 0, 0, records); err != nil {
			t.Fatalf("what was written cannot be replayed: %v", err)
		}
	})
}
