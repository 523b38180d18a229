package group

import "encoding/binary"

// readSubscriptions learns which topics the members of a consumer group
// subscribe to. If one member's metadata is not a consumer's, nothing is known.
func (g *classicGroup) readSubscriptions() {
	g.topics = nil
	if g.protocolType != consumerProtocol {
		return
	}
	topics := map[string]struct{}{}
	if len(g.order) > 0 && g.protocol == nil {
		return
	}
	for _, m := range g.order {
		if !readTopics(m.metadata(g.protocolName()), topics) {
			return
		}
	}
	g.topics = topics
}

// subscribed tells whether offsets of a topic are in use. While the topics of a
// consumer group are not known, all are.
func (g *classicGroup) subscribed(topic string) bool {
	if g.topics == nil {
		return g.protocolType == consumerProtocol
	}
	_, found := g.topics[topic]
	return found
}

// readTopics reads the topics of a ConsumerProtocolSubscription, of which
// version 0 is a prefix in all versions: a version, topics, user data.
func readTopics(metadata []byte, topics map[string]struct{}) bool {
	if len(metadata) < 6 || int16(binary.BigEndian.Uint16(metadata)) < 0 {
		return false
	}
	count, rest := int32(binary.BigEndian.Uint32(metadata[2:])), metadata[6:]
	if count < 0 {
		return false
	}
	for range count {
		if len(rest) < 2 {
			return false
		}
		length := int(int16(binary.BigEndian.Uint16(rest)))
		if rest = rest[2:]; length < 0 || length > len(rest) {
			return false
		}
		if _, known := topics[string(rest[:length])]; !known {
			topics[string(rest[:length])] = struct{}{}
		}
		rest = rest[length:]
	}
	if len(rest) < 4 {
		return false
	}
	userData := int64(int32(binary.BigEndian.Uint32(rest)))
	return userData == -1 || userData >= 0 && userData <= int64(len(rest)-4)
}
