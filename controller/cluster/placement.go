package cluster

import (
	"slices"

	"ottla/controller/metadata"
	"ottla/protocol"
)

// place chooses replicas for count partitions, the first of which has number
// start. Leaders go round the racks and, within a rack, round its brokers, from
// a random beginning; the replicas of a partition lie in as many racks as there
// are (KIP-36). Fenced brokers may follow but not lead.
func (c *Controller) place(start, count, factor int) ([][]protocol.NodeID, *protocol.Error) {
	racks, total, usable := c.racks()
	if usable == 0 {
		return nil, protocol.Errorf(protocol.InvalidReplicationFactor, "All brokers are currently fenced, or have all their log directories cordoned.")
	}
	if factor > total {
		return nil, protocol.Errorf(protocol.InvalidReplicationFactor,
			"The target replication factor of %d cannot be reached because only %d broker(s) are registered or some brokers have all their log directories cordoned.", factor, total)
	}
	ring := interleave(racks)
	offset := int(c.options.Random() % uint64(len(ring)))
	partitions := make([][]protocol.NodeID, count)
	for i := range partitions {
		partitions[i] = c.replicas(ring, offset+start+i, factor)
	}
	return partitions, nil
}

// racks lists the registered brokers by rack, each in the order of their ids.
func (c *Controller) racks() (racks [][]protocol.NodeID, total, usable int) {
	byName := map[string][]protocol.NodeID{}
	for broker := range c.image.Brokers() {
		if broker.InControlledShutdown || cordoned(broker) {
			continue
		}
		name := ""
		if broker.Rack != nil {
			name = *broker.Rack
		}
		byName[name] = append(byName[name], broker.ID)
		total++
		if !broker.Fenced {
			usable++
		}
	}
	names := make([]string, 0, len(byName))
	for name := range byName {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		racks = append(racks, byName[name])
	}
	return racks, total, usable
}

// cordoned tells a broker none of whose directories takes new partitions.
func cordoned(broker *metadata.Broker) bool {
	return len(broker.LogDirs) > 0 && len(broker.CordonedLogDirs) == len(broker.LogDirs)
}

// interleave takes one broker of each rack in turn, so that neighbours in the
// ring are of different racks as long as possible.
func interleave(racks [][]protocol.NodeID) []protocol.NodeID {
	var ring []protocol.NodeID
	for depth := 0; ; depth++ {
		before := len(ring)
		for _, rack := range racks {
			if depth < len(rack) {
				ring = append(ring, rack[depth])
			}
		}
		if len(ring) == before {
			return ring
		}
	}
}

// replicas takes factor neighbours of the ring, the leader first.
func (c *Controller) replicas(ring []protocol.NodeID, at, factor int) []protocol.NodeID {
	for !c.active(ring[at%len(ring)]) {
		at++
	}
	replicas := make([]protocol.NodeID, factor)
	for i := range replicas {
		replicas[i] = ring[(at+i)%len(ring)]
	}
	return replicas
}
