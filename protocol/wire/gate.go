package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// GateTags clears the tagged fields of resp that its version does not have:
// kmsg would write them, and the Java client dies of them ("Tag 0 is not valid
// for version 9"). A test derives the list of such fields from layouts.txt.
func GateTags(resp kmsg.Response) {
	switch r := resp.(type) {
	case *kmsg.ProduceResponse:
		if r.Version < 10 { // KIP-951
			r.Brokers = nil
			for i := range r.Topics {
				for j := range r.Topics[i].Partitions {
					r.Topics[i].Partitions[j].CurrentLeader = kmsg.NewProduceResponseTopicPartitionCurrentLeader()
				}
			}
		}
	case *kmsg.FetchResponse:
		if r.Version < 16 { // KIP-951
			r.Brokers = nil
		}
	case *kmsg.VoteResponse:
		if r.Version < 1 { // KIP-853
			r.NodeEndpoints = nil
		}
	case *kmsg.FetchSnapshotResponse:
		if r.Version < 1 { // KIP-853
			r.NodeEndpoints = nil
		}
	}
}

// GateRequestTags does for a request what GateTags does for a response.
func GateRequestTags(req kmsg.Request) {
	switch r := req.(type) {
	case *kmsg.FetchRequest:
		gateFetchRequest(r)
	case *kmsg.FetchSnapshotRequest:
		if r.Version < 1 { // KIP-853
			for i := range r.Topics {
				for j := range r.Topics[i].Partitions {
					r.Topics[i].Partitions[j].ReplicaDirectoryID = [16]byte{}
				}
			}
		}
	case *kmsg.BrokerHeartbeatRequest:
		if r.Version < 1 { // KIP-858
			r.OfflineLogDirs = nil
		}
		if r.Version < 2 { // KIP-1066
			r.CordonedLogDirs = nil
		}
	}
}

func gateFetchRequest(r *kmsg.FetchRequest) {
	if r.Version < 15 { // KIP-903; ReplicaID says it before
		r.ReplicaState = kmsg.NewFetchRequestReplicaState()
	}
	if r.Version >= 18 {
		return
	}
	defaults := kmsg.NewFetchRequestTopicPartition()
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			p := &r.Topics[i].Partitions[j]
			p.HighWatermark = defaults.HighWatermark // KIP-1166
			if r.Version < 17 {                      // KIP-853
				p.ReplicaDirectoryID = defaults.ReplicaDirectoryID
			}
		}
	}
}
