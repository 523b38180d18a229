package diff

import (
	"cmp"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// tidy takes out of a response what differs from run to run or by what else the server has, and sorts what has no order.
func tidy(resp kmsg.Response) {
	switch resp := resp.(type) {
	case *kmsg.ApiVersionsResponse:
		tidyApiVersions(resp)
	case *kmsg.MetadataResponse:
		tidyMetadata(resp)
	case *kmsg.DescribeClusterResponse:
		resp.ClusterID = mark(resp.ClusterID)
		for i := range resp.Brokers {
			if resp.Brokers[i].NodeID == 1 {
				resp.Brokers[i].Host = "localhost"
			}
		}
	case *kmsg.FetchResponse:
		resp.SessionID = min(resp.SessionID, 1)
	case *kmsg.InitProducerIDResponse:
		resp.ProducerID = someProducer(resp.ProducerID)
	case *kmsg.EndTxnResponse:
		resp.ProducerID = someProducer(resp.ProducerID)
	case *kmsg.AddPartitionsToTxnResponse:
		for _, topic := range resp.Topics {
			slices.SortFunc(topic.Partitions, func(a, b kmsg.AddPartitionsToTxnResponseTopicPartition) int {
				return cmp.Compare(a.Partition, b.Partition)
			})
		}
		for _, one := range resp.Transactions {
			for _, topic := range one.Topics {
				slices.SortFunc(topic.Partitions, func(a, b kmsg.AddPartitionsToTxnResponseTransactionTopicPartition) int {
					return cmp.Compare(a.Partition, b.Partition)
				})
			}
		}
	case *kmsg.DescribeTransactionsResponse:
		for _, state := range resp.TransactionStates {
			slices.SortFunc(state.Topics, func(a, b kmsg.DescribeTransactionsResponseTransactionStateTopic) int {
				return cmp.Compare(a.Topic, b.Topic)
			})
			for _, topic := range state.Topics {
				slices.Sort(topic.Partitions)
			}
		}
	case *kmsg.ListTransactionsResponse:
		slices.SortFunc(resp.TransactionStates, func(a, b kmsg.ListTransactionsResponseTransactionState) int {
			return cmp.Compare(a.TransactionalID, b.TransactionalID)
		})
	case *kmsg.AllocateProducerIDsResponse:
		resp.ProducerIDStart = min(resp.ProducerIDStart, 0)
	case *kmsg.ProduceResponse:
		slices.SortStableFunc(resp.Topics, func(a, b kmsg.ProduceResponseTopic) int { return cmp.Compare(a.Topic, b.Topic) })
		for _, topic := range resp.Topics {
			slices.SortStableFunc(topic.Partitions, func(a, b kmsg.ProduceResponseTopicPartition) int { return cmp.Compare(a.Partition, b.Partition) })
		}
		for i := range resp.Topics {
			for j := range resp.Topics[i].Partitions {
				p := &resp.Topics[i].Partitions[j]
				p.LogAppendTime = min(p.LogAppendTime, 1)
			}
		}
	case *kmsg.BrokerRegistrationResponse:
		resp.BrokerEpoch = min(resp.BrokerEpoch, 1)
	case *kmsg.DescribeConfigsResponse:
		tidyConfigs(resp)
	case *kmsg.CreateTopicsResponse:
		for i := range resp.Topics {
			slices.SortFunc(resp.Topics[i].Configs, func(a, b kmsg.CreateTopicsResponseTopicConfig) int { return cmp.Compare(a.Name, b.Name) })
		}
		slices.SortFunc(resp.Topics, func(a, b kmsg.CreateTopicsResponseTopic) int { return cmp.Compare(a.Topic, b.Topic) })
	case *kmsg.DeleteTopicsResponse:
		slices.SortStableFunc(resp.Topics, func(a, b kmsg.DeleteTopicsResponseTopic) int { return cmp.Compare(orNone(a.Topic), orNone(b.Topic)) })
	case *kmsg.DescribeLogDirsResponse:
		tidyLogDirs(resp)
	case *kmsg.DescribeProducersResponse:
		for i := range resp.Topics {
			for j := range resp.Topics[i].Partitions {
				for k := range resp.Topics[i].Partitions[j].ActiveProducers {
					resp.Topics[i].Partitions[j].ActiveProducers[k].LastTimestamp = 1
				}
			}
		}
	case *kmsg.DescribeQuorumResponse:
		tidyQuorum(resp)
	case *kmsg.ListOffsetsResponse:
		for _, topic := range resp.Topics {
			slices.SortFunc(topic.Partitions, func(a, b kmsg.ListOffsetsResponseTopicPartition) int { return cmp.Compare(a.Partition, b.Partition) })
		}
	case *kmsg.ElectLeadersResponse:
		slices.SortFunc(resp.Topics, func(a, b kmsg.ElectLeadersResponseTopic) int { return cmp.Compare(a.Topic, b.Topic) })
		if len(resp.Topics) > 6 {
			resp.Topics = resp.Topics[:6]
		}
	case *kmsg.ListGroupsResponse:
		resp.Groups = slices.DeleteFunc(resp.Groups, func(g kmsg.ListGroupsResponseGroup) bool { // of the generated cases
			return strings.HasPrefix(g.Group, "join-") || strings.HasPrefix(g.Group, "consumers-")
		})
	}
}

func tidyApiVersions(resp *kmsg.ApiVersionsResponse) {
	if resp.ErrorCode != 0 {
		return
	}
	resp.ApiKeys, resp.SupportedFeatures, resp.FinalizedFeatures = nil, nil, nil // advertised tells them one by one
	resp.FinalizedFeaturesEpoch = min(resp.FinalizedFeaturesEpoch, 1)
}

func tidyMetadata(resp *kmsg.MetadataResponse) {
	if resp.ClusterID != nil {
		resp.ClusterID = kmsg.StringPtr(mark(*resp.ClusterID))
	}
	if len(resp.Topics) > 6 { // all of them: those that are always there
		resp.Topics = slices.DeleteFunc(resp.Topics, func(t kmsg.MetadataResponseTopic) bool {
			return t.Topic == nil || !strings.HasPrefix(*t.Topic, "gen-") || *t.Topic > "gen-30"
		})
	}
	slices.SortStableFunc(resp.Topics, func(a, b kmsg.MetadataResponseTopic) int { return cmp.Compare(orNone(a.Topic), orNone(b.Topic)) })
	for i := range resp.Topics {
		slices.SortFunc(resp.Topics[i].Partitions, func(a, b kmsg.MetadataResponseTopicPartition) int { return cmp.Compare(a.Partition, b.Partition) })
	}
}

func orNone(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func mark(clusterID string) string {
	if len(clusterID) == 22 {
		return "<cluster id>"
	}
	return clusterID
}

func tidyConfigs(resp *kmsg.DescribeConfigsResponse) {
	for i := range resp.Resources {
		r := &resp.Resources[i]
		if len(r.Configs) > 100 { // of a broker: ports and paths are among them, and they are compared elsewhere
			r.Configs = nil
		}
		slices.SortFunc(r.Configs, func(a, b kmsg.DescribeConfigsResponseResourceConfig) int { return cmp.Compare(a.Name, b.Name) })
		for j := range r.Configs {
			if r.Configs[j].Documentation != nil {
				r.Configs[j].Documentation = kmsg.StringPtr("<documentation>")
			}
		}
	}
}

func tidyLogDirs(resp *kmsg.DescribeLogDirsResponse) {
	for i := range resp.Dirs {
		d := &resp.Dirs[i]
		d.Dir, d.TotalBytes, d.UsableBytes = "<directory>", min(d.TotalBytes, 1), min(d.UsableBytes, 1)
		if len(d.Topics) > 6 {
			d.Topics = slices.DeleteFunc(d.Topics, func(t kmsg.DescribeLogDirsResponseDirTopic) bool {
				return !strings.HasPrefix(t.Topic, "gen-") || t.Topic > "gen-30"
			})
		}
		for j := range d.Topics {
			for k := range d.Topics[j].Partitions {
				p := &d.Topics[j].Partitions[k]
				p.Size = min(p.Size, 0)
			}
		}
		slices.SortFunc(d.Topics, func(a, b kmsg.DescribeLogDirsResponseDirTopic) int { return cmp.Compare(a.Topic, b.Topic) })
		for _, topic := range d.Topics {
			slices.SortFunc(topic.Partitions, func(a, b kmsg.DescribeLogDirsResponseDirTopicPartition) int {
				return cmp.Compare(a.Partition, b.Partition)
			})
		}
	}
}

func tidyQuorum(resp *kmsg.DescribeQuorumResponse) {
	state := func(all []kmsg.DescribeQuorumResponseTopicPartitionReplicaState) {
		for i := range all {
			all[i].LogEndOffset, all[i].LastFetchTimestamp, all[i].LastCaughtUpTimestamp = min(all[i].LogEndOffset, 1), min(all[i].LastFetchTimestamp, 1), min(all[i].LastCaughtUpTimestamp, 1)
		}
	}
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			p := &resp.Topics[i].Partitions[j]
			p.LeaderEpoch, p.HighWatermark = min(p.LeaderEpoch, 1), min(p.HighWatermark, 1)
			state(p.CurrentVoters)
			state(p.Observers)
		}
	}
}

// someProducer shows an id that is no alias of a story as 1.
func someProducer(id int64) int64 {
	if id >= firstAlias {
		return id
	}
	return min(id, 1)
}
