package sim

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"ottla/controller/group"
	"ottla/controller/machine"
	"ottla/controller/shard"
	"ottla/controller/txn"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
)

// shadow is all that was ever written to a partition of one of Kafka's own topics, which compaction has no hand in.
type shadow struct {
	batches []record.Batch
	next    protocol.Offset
	records int
}

// shadows tells whether a partition has one.
func (p *partModel) shadows() bool { return p.topic.plan.internal && p.topic.plan.compacted }

// follow keeps what was appended since the last look.
func (h *host) follow(p *partModel, l *log.Log) {
	if !p.shadows() {
		return
	}
	for _, b := range h.batches(p, l, p.shadow.next) {
		p.shadow.batches, p.shadow.records = append(p.shadow.batches, b), p.shadow.records+int(b.Count())
		p.shadow.next = b.NextOffset()
	}
}

// forget drops what lies from end on; a power cut took it.
func (s *shadow) forget(end protocol.Offset) {
	s.next = min(s.next, end)
	s.batches = slices.DeleteFunc(s.batches, func(b record.Batch) bool { return b.BaseOffset() >= end })
}

// batches reads a log from an offset to its end. No fault strikes meanwhile: the node does not know of it.
func (h *host) batches(p *partModel, l *log.Log, from protocol.Offset) (all []record.Batch) {
	h.peeking = true
	defer func() { h.peeking = false }()
	for end := l.View().LogEndOffset; from < end; {
		read, err := l.Read(from, 1<<20, end, true)
		if err != nil {
			return nil // it failed, or is closed
		}
		content, err := read.Region.ReadAll()
		read.Region.Release()
		if err != nil {
			h.s.Violate("%s: cannot be read at %d: %v", p, from, err)
			return nil
		}
		from = max(read.NextOffset, from)
		for content = bytes.Clone(content); len(content) > 0; {
			var b record.Batch
			if b, content, err = record.Next(content); err != nil {
				h.s.Violate("%s: no batch at %d: %v", p, from, err)
				return nil
			}
			all, from = append(all, b), max(from, b.NextOffset())
		}
		if read.Region.Len() == 0 {
			return all // compaction has left nothing up to the end
		}
	}
	return all
}

// compareLoads has two coordinators loaded, one from the log and one from all that was ever written to it: compaction must not make a
// difference.
func (h *host) compareLoads(p *partModel, l *log.Log) {
	if !p.shadows() || h.s.Failure != nil {
		return
	}
	h.follow(p, l)
	present := h.batches(p, l, l.View().LogStartOffset)
	left := 0
	for _, b := range present {
		left += int(b.Count())
	}
	if left < p.shadow.records {
		h.s.counts.CompactedLoads++
	}
	whole, err := h.loaded(p, p.shadow.batches)
	if err != nil {
		h.s.Violate("%s: what was written cannot be loaded: %v", p, err)
		return
	}
	now, err := h.loaded(p, present)
	if err != nil || now != whole {
		h.s.Violate("%s: %d of %d records are left by compaction, and a coordinator loads (%v)\n%s\ninstead of\n%s", p, left, p.shadow.records, err, now, whole)
	}
}

// loaded is the durable state of a coordinator that has read these batches.
func (h *host) loaded(p *partModel, batches []record.Batch) (string, error) {
	var m machine.Machine = txn.New(txn.Options{})
	if p.topic.name == "__consumer_offsets" {
		m = group.New(group.Options{})
	}
	for _, b := range batches {
		if err := b.CheckCRC(); err != nil {
			return "", err
		}
		for r, err := range record.Records(b, h.s.model.pool, 1<<24) {
			if err == nil {
				err = apply(m, b, r)
			}
			if err != nil {
				return "", fmt.Errorf("offset %d: %w", r.Offset, err)
			}
		}
	}
	return durable(m), nil
}

// apply hands one record to a machine, as package shard does.
func apply(m machine.Machine, b record.Batch, r record.Record) error {
	records, epoch := []machine.Record{{Key: r.Key, Value: r.Value}}, b.PartitionLeaderEpoch()
	transactional, _ := m.(shard.Transactional)
	switch {
	case !b.IsTransactional() && !b.IsControl():
		return m.Apply(r.Offset, epoch, r.Timestamp, records)
	case transactional == nil:
		return fmt.Errorf("a transaction in a log that has none")
	case !b.IsControl():
		return transactional.ApplyTransactional(r.Offset, epoch, r.Timestamp, b.ProducerID(), b.ProducerEpoch(), records)
	}
	marker, err := record.ParseEndTxnMarker(r.Key, r.Value)
	if err != nil {
		return err
	}
	return transactional.ApplyMarker(r.Offset, epoch, r.Timestamp, b.ProducerID(), b.ProducerEpoch(), marker.Type == record.ControlCommit, marker.CoordinatorEpoch)
}

// durable writes down what of a machine follows from its log. The fields are the machines' own: nobody else has a use for them, and a
// new one is compared without being listed here. Of groups only those count that offsets or a generation have made: of a group whose
// only transaction was aborted compaction leaves no trace.
func durable(m machine.Machine) string {
	var text strings.Builder
	v := reflect.ValueOf(m).Elem()
	if _, ok := m.(*txn.Coordinator); ok {
		show(&text, v.FieldByName("transactions"))
		return text.String()
	}
	show(&text, v.FieldByName("offsets"))
	groups := v.FieldByName("groups")
	for _, key := range sortedKeys(groups) {
		classic := groups.MapIndex(key).Elem().FieldByName("classic")
		if classic.IsNil() || !classic.Elem().FieldByName("written").IsNil() {
			fmt.Fprintf(&text, "\n%s: ", key)
			show(&text, groups.MapIndex(key))
		}
	}
	return text.String()
}

func sortedKeys(m reflect.Value) []reflect.Value {
	return slices.SortedFunc(slices.Values(m.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// show writes a value with all that it refers to, maps by their keys.
func show(text *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			text.WriteString("nil")
			return
		}
		show(text, v.Elem())
	case reflect.Map:
		text.WriteString("{")
		for _, key := range sortedKeys(v) {
			fmt.Fprintf(text, "%v: ", key)
			show(text, v.MapIndex(key))
			text.WriteString("; ")
		}
		text.WriteString("}")
	case reflect.Struct:
		text.WriteString("(")
		for i := range v.NumField() {
			fmt.Fprintf(text, "%s=", v.Type().Field(i).Name)
			show(text, v.Field(i))
			text.WriteString(" ")
		}
		text.WriteString(")")
	default:
		fmt.Fprintf(text, "%v", v)
	}
}
