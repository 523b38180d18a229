package group

import (
	"bytes"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// member is a member of a classic group.
type member struct {
	id         string
	instanceID *string // nil: a dynamic member
	clientID   string
	clientHost string
	sequence   uint64 // of its group: who joined first has the lowest

	rebalanceTimeoutMs int32
	sessionTimeoutMs   int32
	protocols          []memberProtocol // in the order of its preference
	assignment         []byte

	isNew       bool    // it has not been told its member id yet, or was never in a generation
	join        waiting // its JoinGroup, until the rebalance has all members
	sync        waiting // its SyncGroup, until the leader has sent the assignments
	pendingSync bool    // it is to send a SyncGroup of this generation
	session     deadline
}

type memberProtocol struct {
	name     string
	metadata []byte
}

// protocolsOf copies what a member supports: the core keeps no bytes of a frame.
func protocolsOf(protocols []kmsg.JoinGroupRequestProtocol) []memberProtocol {
	own := make([]memberProtocol, len(protocols))
	for i, p := range protocols {
		own[i] = memberProtocol{p.Name, bytes.Clone(p.Metadata)}
	}
	return own
}

// matches tells that a member joins with the very protocols that it has.
func (m *member) matches(protocols []memberProtocol) bool {
	return slices.EqualFunc(m.protocols, protocols, func(a, b memberProtocol) bool {
		return a.name == b.name && bytes.Equal(a.metadata, b.metadata)
	})
}

// metadata is what the member has sent for a protocol, nil if it does not
// support it.
func (m *member) metadata(protocol string) []byte {
	for _, p := range m.protocols {
		if p.name == protocol {
			return p.metadata
		}
	}
	return nil
}

// distinct gives each protocol's name once.
func distinct(protocols []memberProtocol) []string {
	var names []string
	for _, p := range protocols {
		if !slices.Contains(names, p.name) {
			names = append(names, p.name)
		}
	}
	return names
}

// waits tells that a member cannot send heartbeats, for it waits for an answer.
// A new member is not spared: if its client is gone, nothing else would tell.
func (m *member) waits() bool { return !m.isNew && (m.join.token != 0 || m.sync.token != 0) }
