package node

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/broker"
	"ottla/protocol"
	"ottla/protocol/client"
	"ottla/protocol/wire"
	"ottla/storage/fetcher"
	"ottla/storage/partition"
)

// FetchFrom sends a fetcher's request to a broker; see fetcher.Options.Send.
type FetchFrom func(leader protocol.NodeID, index int, req kmsg.Request, done fetcher.Done)

// replicate makes what copies the records of other brokers' partitions, and what asks
// for other in-sync replicas. A node in both roles is alone and has neither.
func (n *Node) replicate() {
	if n.config.Controller {
		return
	}
	n.isr = &broker.ISRChanges{
		NodeID: n.config.NodeID, Epoch: n.lifecycle.Epoch, Image: n.quorum.Image, Send: n.options.Send, Wake: n.wakes.of(partBroker),
	}
	n.fetchers = fetcher.New(fetcher.Options{
		NodeID: n.config.NodeID, BrokerEpoch: n.lifecycle.Epoch, Replicas: n.replicas,
		Send: n.options.FetchFrom, Workers: n.options.Workers,
		Count:            int(n.config.Int("num.replica.fetchers")),
		MaxBytes:         int(n.config.Int("replica.fetch.max.bytes")),
		MinBytes:         int(n.config.Int("replica.fetch.min.bytes")),
		MaxWait:          millis(int64(n.config.Int("replica.fetch.wait.max.ms"))),
		ResponseMaxBytes: int(n.config.Int("replica.fetch.response.max.bytes")),
		Backoff:          millis(int64(n.config.Int("replica.fetch.backoff.ms"))),
		Throttled:        n.throttles.Follower,
		Logger:           n.options.Logger,
	})
	n.fetchers.Wake = n.wakes.of(partFetchers)
}

// alterPartition asks for other in-sync replicas; nil on a node that is alone.
func (n *Node) alterPartition() func(protocol.TopicPartition, *partition.AlterPartition, func(time.Time, partition.AlterResult)) {
	if n.config.Controller {
		return nil
	}
	return func(tp protocol.TopicPartition, wish *partition.AlterPartition, answer func(time.Time, partition.AlterResult)) {
		n.isr.Ask(tp, wish, answer)
	}
}

func (n *Node) tickFetchers(now time.Time) {
	if n.fetchers != nil {
		n.fetchers.Tick(now)
	}
}

func (n *Node) fetchersDeadline(time.Time) time.Time {
	if n.fetchers == nil {
		return time.Time{}
	}
	return n.fetchers.NextDeadline()
}

// fetchFrom is a FetchFrom: each fetcher has a connection of its own.
func (r *runner) fetchFrom(leader protocol.NodeID, index int, req kmsg.Request, done fetcher.Done) {
	peer := r.peers.client(peerKey{node: leader, fetcher: index + 1, api: req.Key()}, r.peers.dialer(leader))
	if peer == nil {
		done(time.Now(), nil, nil, client.ErrClosed)
		return
	}
	timeout := millis(int64(r.node.config.Int("replica.socket.timeout.ms")))
	fetch, ok := req.(*kmsg.FetchRequest)
	if !ok {
		peer.Send(req, timeout, func(resp kmsg.Response, err error) { done(time.Now(), resp, nil, err) })
		return
	}
	peer.SendFetch(fetch, timeout, func(resp *kmsg.FetchResponse, frame *wire.Frame, err error) {
		if err != nil {
			done(time.Now(), nil, nil, err)
			return
		}
		done(time.Now(), resp, frame, nil)
	})
}
