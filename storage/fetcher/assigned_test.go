package fetcher

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/storage/partition"
)

// TestAssignedDuringAStep: a partition that is assigned while the fetcher is between two requests is in the next ones,
// whichever moment it was.
func TestAssignedDuringAStep(t *testing.T) {
	var asked atomic.Int32 // the latest epoch of orders-1 that was fetched
	var steps atomic.Int64
	answers := make(chan func(), 1)
	f := newFixture(t, func(o *Options) {
		o.Send = func(_ protocol.NodeID, _ int, req kmsg.Request, done Done) {
			fetch := req.(*kmsg.FetchRequest)
			for _, topic := range fetch.Topics {
				for _, p := range topic.Partitions {
					if p.Partition == 1 {
						asked.Store(p.CurrentLeaderEpoch)
					}
				}
			}
			steps.Add(1)
			resp := kmsg.NewPtrFetchResponse()
			resp.SessionID = 5
			answers <- func() { done(begin, resp, nil, nil) }
		}
	})
	f.follow(0, 1)
	f.tick(0)
	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		for {
			select {
			case answer := <-answers:
				answer()
			case <-stopped:
				return
			}
		}
	}()
	const rounds = 3000
	deadline := time.Now().Add(5 * time.Minute)
	for epoch := int32(1); epoch <= rounds; epoch++ {
		f.must(f.replicas.Apply(begin, orders(1), partition.State{
			TopicID: topicID, Leader: 2, LeaderEpoch: protocol.LeaderEpoch(epoch), PartitionEpoch: epoch, ISR: []protocol.NodeID{2}, Replicas: []protocol.NodeID{1, 2},
		}, protocol.DirectoryUnassigned, epoch == 1))
		f.fetchers.Assign(begin, orders(1), topicID, 2, protocol.LeaderEpoch(epoch))
		for before := steps.Load(); ; runtime.Gosched() {
			since := steps.Load() - before
			last := asked.Load() // of at least so many requests
			if last == epoch {
				break
			}
			if since > 1_000 || time.Now().After(deadline) {
				t.Fatalf("%d requests after orders-1 was assigned in epoch %d the last that was asked for is %d", since, epoch, last)
			}
		}
	}
}
