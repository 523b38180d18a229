package api

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// allocating is a controller that gives blocks of producer ids.
func allocating() func(req kmsg.Request) (kmsg.Response, error) {
	next := int64(1000)
	return func(kmsg.Request) (kmsg.Response, error) {
		resp := kmsg.NewPtrAllocateProducerIDsResponse()
		resp.ProducerIDStart, resp.ProducerIDLen = next, 2
		next += 1000
		return resp, nil
	}
}

// BEHAVIOUR 60 at every version: always an id of its own at epoch 0, over the ends
// of blocks.
func TestInitProducerID(t *testing.T) {
	versions(t, protocol.InitProducerId, func(t *testing.T, version int16) {
		f := newFixture(t)
		f.controller = allocating()
		p := f.connect()
		for _, want := range []int64{1000, 1001, 2000} {
			req := kmsg.NewPtrInitProducerIDRequest()
			req.ProducerID, req.ProducerEpoch = 5, 6
			resp := request[*kmsg.InitProducerIDResponse](p, req, version)
			if resp.ErrorCode != 0 || resp.ProducerID != want || resp.ProducerEpoch != 0 {
				t.Errorf("%+v, not id %d", resp, want)
			}
		}
	})
}

func TestInitProducerIDRefuses(t *testing.T) {
	authorizer := deny("forbidden")
	f := newFixture(t, func(n *Node) { n.Authorize = authorizer })
	f.controller = allocating()
	p := f.connect()
	for _, test := range []struct {
		what   string
		change func(*kmsg.InitProducerIDRequest)
		want   protocol.ErrorCode
	}{
		{"an id without epoch", func(r *kmsg.InitProducerIDRequest) { r.ProducerID = 5 }, protocol.InvalidRequest},
		{"an epoch without id", func(r *kmsg.InitProducerIDRequest) { r.ProducerEpoch = 5 }, protocol.InvalidRequest},
		{"an empty transactional id", func(r *kmsg.InitProducerIDRequest) { r.TransactionalID = ptr("") }, protocol.InvalidRequest},
		{"a transactional id without coordinator", func(r *kmsg.InitProducerIDRequest) { r.TransactionalID = ptr("tx") }, protocol.NotCoordinator},
		{"a forbidden one", func(r *kmsg.InitProducerIDRequest) { r.TransactionalID = ptr("forbidden") }, protocol.TransactionalIDAuthorizationFailed},
	} {
		req := kmsg.NewPtrInitProducerIDRequest()
		test.change(req)
		resp := request[*kmsg.InitProducerIDResponse](p, req, 5)
		expectCode(t, test.what, resp.ErrorCode, test.want)
		if resp.ProducerID != -1 || resp.ProducerEpoch != -1 {
			t.Errorf("%s: %+v", test.what, resp)
		}
	}
}

// KIP-679: who may write to any topic needs no right on the cluster.
func TestInitProducerIDAuthorization(t *testing.T) {
	for _, test := range []struct {
		cluster, anyTopic bool
		want              protocol.ErrorCode
	}{
		{true, false, protocol.None}, {false, true, protocol.None}, {false, false, protocol.ClusterAuthorizationFailed},
	} {
		authorizer := deny()
		authorizer.names["kafka-cluster"], authorizer.any = !test.cluster, !test.anyTopic
		f := newFixture(t, func(n *Node) { n.Authorize = authorizer })
		f.controller = allocating()
		resp := request[*kmsg.InitProducerIDResponse](f.connect(), kmsg.NewPtrInitProducerIDRequest(), 4)
		expectCode(t, "authorization", resp.ErrorCode, test.want)
		if !authorizer.wasAsked(kmsg.ACLOperationIdempotentWrite, kmsg.ACLResourceTypeCluster, "kafka-cluster") {
			t.Error("the authorizer was not asked about idempotent writes")
		}
	}
}

func TestInitProducerIDWithoutController(t *testing.T) {
	f := newFixture(t)
	f.controller = func(kmsg.Request) (kmsg.Response, error) { return nil, errors.New("nobody there") }
	resp := request[*kmsg.InitProducerIDResponse](f.connect(), kmsg.NewPtrInitProducerIDRequest(), 4)
	expectCode(t, "no controller", resp.ErrorCode, protocol.CoordinatorLoadInProgress)
}
