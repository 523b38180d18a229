package replica

import (
	"ottla/protocol"
	"ottla/storage/partition"
	"ottla/storage/traffic"
)

// Description is a replica as the describing APIs and the metrics show it.
type Description struct {
	Partition        protocol.TopicPartition
	Directory        protocol.DirectoryID
	View             *partition.View // role, leader, epochs, ISR; not to be changed
	HighWatermark    protocol.Offset
	LastStableOffset protocol.Offset
	LogStartOffset   protocol.Offset
	LogEndOffset     protocol.Offset
	SizeBytes        int64
	Segments         int
}

func (r *Replica) describe() Description {
	d := Description{Partition: r.tp, View: r.view.Load(), HighWatermark: protocol.Offset(r.highWatermark.Load())}
	view := r.log().View()
	d.Directory, _ = r.manager.options.Store.DirectoryOf(r.tp)
	d.LastStableOffset = lastStable(d.HighWatermark, view)
	d.LogStartOffset, d.LogEndOffset = view.LogStartOffset, view.LogEndOffset
	d.SizeBytes, d.Segments = r.log().Size(), len(r.log().Segments())
	return d
}

// Describe tells about one partition. The errors are those of a request for a
// partition that is not here.
func (m *Manager) Describe(tp protocol.TopicPartition) (Description, error) {
	r, err := m.find(tp, protocol.ZeroUUID)
	if err != nil {
		return Description{}, err
	}
	return r.describe(), nil
}

// DescribeAll tells about every partition on this node, by topic and partition.
func (m *Manager) DescribeAll() []Description {
	all := m.sorted()
	descriptions := make([]Description, len(all))
	for i, r := range all {
		descriptions[i] = r.describe()
	}
	return descriptions
}

// HighWatermark is the offset below which records of a partition are committed.
func (m *Manager) HighWatermark(tp protocol.TopicPartition) (protocol.Offset, error) {
	r, err := m.find(tp, protocol.ZeroUUID)
	if err != nil {
		return protocol.NoOffset, err
	}
	return protocol.Offset(r.highWatermark.Load()), nil
}

// LogEnd is the offset that the next record of a partition will get.
func (m *Manager) LogEnd(tp protocol.TopicPartition) (protocol.Offset, error) {
	r, err := m.find(tp, protocol.ZeroUUID)
	if err != nil {
		return protocol.NoOffset, err
	}
	return r.log().View().LogEndOffset, nil
}

// EachTraffic calls visit with the counters of every topic that has replicas here,
// by name, and at last with those of all, which never fall, under the name "".
func (m *Manager) EachTraffic(visit func(topic string, counters *traffic.Counters)) {
	m.traffic.Each(visit)
}

// trafficOf gives the counters of a replica; those of none are kept apart.
func (m *Manager) trafficOf(r *Replica) *traffic.Counters {
	if r == nil {
		return m.traffic.Nowhere()
	}
	return r.traffic
}

// count adds what a fetch gave to whom.
func (p *poll) count(results []FetchResult) {
	p.spent(results)
	if p.req.Replica == Debugging {
		return // tools and coordinators
	}
	for i := range results {
		p.manager.trafficOf(p.slots[i].replica).Fetched(results[i].Records.Len(), p.req.Replica >= 0, results[i].Err)
	}
}
