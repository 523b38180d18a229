package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Requester is who sent a request, and how.
type Requester struct {
	Principal string // as "User:alice"
	Host      string // the peer's address without the port
	Listener  string // the listener's name
	Secure    bool   // the bytes were encrypted on the way
}

// Authorizer tells what a requester may do. It is asked before anything about a
// resource is told, from anywhere at any time.
type Authorizer interface {
	// Allowed tells about one resource.
	Allowed(who Requester, operation kmsg.ACLOperation, kind kmsg.ACLResourceType, name string) bool
	// AllowedAny tells whether there is any resource of a kind to which the
	// requester may do something (KIP-679).
	AllowedAny(who Requester, operation kmsg.ACLOperation, kind kmsg.ACLResourceType) bool
}

// Permissive allows everything, as a cluster without authorizer does.
type Permissive struct{}

// Allowed implements Authorizer.
func (Permissive) Allowed(Requester, kmsg.ACLOperation, kmsg.ACLResourceType, string) bool {
	return true
}

// AllowedAny implements Authorizer.
func (Permissive) AllowedAny(Requester, kmsg.ACLOperation, kmsg.ACLResourceType) bool { return true }

// clusterResource is the name of the one resource of type cluster.
const clusterResource = "kafka-cluster"

// may tells whether the requester may do something to a resource.
func (c *call) may(operation kmsg.ACLOperation, kind kmsg.ACLResourceType, name string) bool {
	if c.Authorize == (Permissive{}) {
		return true // without putting together who asks
	}
	return c.Authorize.Allowed(c.requester(), operation, kind, name)
}

// mayAny tells whether there is any resource of a kind to which the requester may
// do something.
func (c *call) mayAny(operation kmsg.ACLOperation, kind kmsg.ACLResourceType) bool {
	return c.Authorize.AllowedAny(c.requester(), operation, kind)
}

// mayTopic and mayCluster are may for the resources asked about most.
func (c *call) mayTopic(operation kmsg.ACLOperation, topic string) bool {
	return c.may(operation, kmsg.ACLResourceTypeTopic, topic)
}

func (c *call) mayCluster(operation kmsg.ACLOperation) bool {
	return c.may(operation, kmsg.ACLResourceTypeCluster, clusterResource)
}
