package check

import (
	"fmt"

	"ottla/controller/group"
	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/controller/shard"
	"ottla/controller/txn"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/schema"
)

// coordinatorCheck reads the records of an internal topic, and replays them through the machine that a coordinator runs.
type coordinatorCheck struct {
	*logCheck
	log     schema.Log
	machine machine.Machine // nil: there is none for the topic
	stopped bool
}

// coordinatorOf gives what consumes the records of an internal topic; nil for any other.
func (c *checker) coordinatorOf(l *logCheck, tp protocol.TopicPartition) func(record.Batch, []record.Record) {
	check := &coordinatorCheck{logCheck: l}
	switch tp.Topic {
	case protocol.ConsumerOffsetsTopic:
		check.log = schema.GroupLog
		check.machine = group.New(group.Options{Random: func() uint64 { return 0 }, Image: func() *metadata.Image {
			if c.image == nil {
				return metadata.Empty()
			}
			return c.image
		}})
	case protocol.TransactionStateTopic:
		check.log = schema.TransactionLog
		check.machine = txn.New(txn.Options{Version: func() int16 { return 0 }})
	case protocol.ShareGroupStateTopic:
		check.log = schema.ShareLog
	default:
		return nil
	}
	return check.batch
}

func (k *coordinatorCheck) batch(b record.Batch, records []record.Record) {
	if k.stopped || k.broken {
		return
	}
	err := k.decode(b, records)
	if err == nil && k.machine != nil {
		err = replay(func() error { return k.apply(b, records) })
	}
	if err != nil {
		k.fault(CoordinatorState, k.at.file, k.at.position, k.name, "the batch at offset %d: %v", b.BaseOffset(), err)
		k.stopped = true
	}
}

// decode reads every key and value, whose kinds and versions must be known.
func (k *coordinatorCheck) decode(b record.Batch, records []record.Record) error {
	if b.IsControl() {
		return nil
	}
	for _, r := range records {
		key, err := schema.DecodeKey(k.log, r.Key)
		if err != nil {
			return fmt.Errorf("the key of the record at offset %d: %w", r.Offset, err)
		}
		if r.Value == nil {
			continue
		}
		if _, _, err := schema.DecodeValue(k.log, key.APIKey(), r.Value); err != nil {
			return fmt.Errorf("the value of the record at offset %d: %w", r.Offset, err)
		}
	}
	return nil
}

// apply does what controller/shard does when it loads a partition.
func (k *coordinatorCheck) apply(b record.Batch, records []record.Record) error {
	transactional, known := k.machine.(shard.Transactional)
	epoch, id, producerEpoch := b.PartitionLeaderEpoch(), b.ProducerID(), b.ProducerEpoch()
	for _, r := range records {
		if r.Offset < k.start {
			continue // deleted
		}
		var err error
		one := []machine.Record{{Key: r.Key, Value: r.Value}}
		switch {
		case !b.IsControl() && !b.IsTransactional():
			err = k.machine.Apply(r.Offset, epoch, r.Timestamp, one)
		case !known:
		case b.IsControl():
			var marker record.EndTxnMarker
			if marker, err = record.ParseEndTxnMarker(r.Key, r.Value); err == nil {
				err = transactional.ApplyMarker(r.Offset, epoch, r.Timestamp, id, producerEpoch, marker.Type == record.ControlCommit, marker.CoordinatorEpoch)
			}
		default:
			err = transactional.ApplyTransactional(r.Offset, epoch, r.Timestamp, id, producerEpoch, one)
		}
		if err != nil {
			return fmt.Errorf("the record at offset %d cannot be replayed: %w", r.Offset, err)
		}
	}
	return nil
}
