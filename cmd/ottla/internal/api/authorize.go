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

// Authorizer tells whether a requester may do something to a resource. It is
// asked for every resource before anything about that resource is told.
type Authorizer func(who Requester, operation kmsg.ACLOperation, kind kmsg.ACLResourceType, name string) bool

// Permissive allows everything: a cluster without authorizer.
func Permissive(Requester, kmsg.ACLOperation, kmsg.ACLResourceType, string) bool { return true }

// clusterResource is the name of the one resource of type cluster.
const clusterResource = "kafka-cluster"
