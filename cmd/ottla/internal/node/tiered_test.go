package node_test

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/broker"
	"ottla/cmd/ottla/internal/node"
	"ottla/controller/config"
	"ottla/controller/metadata"
	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/schema"
	"ottla/storage/logdir"
	"ottla/storage/vfs"
)

const metadataLog = "/data/__cluster_metadata-0/00000000000000000000.log"

// tier has the metadata of a directory say that a topic has segments in remote storage. It gives the end of the metadata log, and
// its last leader epoch.
func (s *stepped) tier(disk *vfs.Mem, topic string) (end protocol.Offset, epoch protocol.LeaderEpoch) {
	s.Helper()
	content, err := vfs.ReadFile(disk, metadataLog)
	s.must(err)
	for rest := content; len(rest) > 0; {
		batch, after, err := record.Next(rest)
		s.must(err)
		end, epoch, rest = batch.NextOffset(), batch.PartitionLeaderEpoch(), after
	}
	value := "true"
	b := record.NewBuilder(record.PlainOptions())
	b.Append(s.now.UnixMilli(), nil, schema.EncodeMetadata(&schema.ConfigRecord{
		ResourceType: metadata.TopicConfig, ResourceName: topic, Name: "remote.storage.enable", Value: &value,
	}, 0), nil)
	batch := b.Build(nil)
	batch.SetBaseOffset(end)
	batch.SetPartitionLeaderEpoch(epoch)
	s.must(vfs.WriteFile(disk, metadataLog, append(content, batch...), true))
	return end + 1, epoch
}

// TestRefusedForTieredTopics: a start that is refused for topics in remote storage leaves the logs as they are, and the marker of the
// clean stop before it: whoever starts there next need not recover anything.
func TestRefusedForTieredTopics(t *testing.T) {
	for _, role := range []string{"controller", "broker"} {
		t.Run(role, func(t *testing.T) {
			s, clean, _ := used(t)
			end, epoch := s.tier(clean, "orders")
			options := node.Options{
				Config: s.config, FS: clean, Random: rand.New(rand.NewPCG(5, 1)).Uint64, Logger: slog.New(slog.DiscardHandler), Hostname: "h0",
				Fatal: func(err error) { t.Errorf("the node cannot go on: %v", err) }, State: func(broker.State) {},
				ToQuorum: func(_ raft.Address, req kmsg.Request, _ time.Duration, done func(kmsg.Response, error)) {
					done(upToDate(req.(*kmsg.FetchRequest), end, epoch), nil)
				},
			}
			if role == "broker" {
				properties, err := config.FromOverrides([]string{
					"process.roles=broker", "node.id=1", "listeners=PLAINTEXT://h0:9092", "controller.listener.names=CONTROLLER",
					"controller.quorum.bootstrap.servers=h9:9093", "log.dirs=/data",
				})
				s.must(err)
				options.Config, _, err = config.Broker(properties)
				s.must(err)
			}
			before := contents(s, clean)
			n, err := node.New(s.now, options)
			s.must(err)
			if err = n.Begin(s.now); err == nil && role == "broker" {
				quorum := n.Quorum()
				for range 10 {
					quorum.Tick(s.now)
				}
				if !n.CaughtUp() {
					t.Fatal("it does not hear that it has all of the metadata")
				}
				err = n.Open(s.now)
			}
			if err == nil || !strings.Contains(err.Error(), "remote storage") {
				t.Fatalf("it starts: %v", err)
			}
			if !slices.Contains(before, "/data/"+logdir.CleanShutdownFile) {
				t.Fatalf("the directory was not left in order: %q", before)
			}
			if after := contents(s, clean); !slices.Equal(after, before) {
				t.Errorf("it leaves %q, not %q", after, before)
			}
		})
	}
}

// contents lists the files, but for those of the metadata.
func contents(s *stepped, disk *vfs.Mem) []string {
	return slices.DeleteFunc(filesOf(s.T, disk, "/data"), func(name string) bool { return strings.Contains(name, "__cluster_metadata-0") })
}

// upToDate answers a fetch of the metadata as a leader that has nothing more.
func upToDate(asked *kmsg.FetchRequest, end protocol.Offset, epoch protocol.LeaderEpoch) *kmsg.FetchResponse {
	resp := kmsg.NewPtrFetchResponse()
	topic, p := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
	topic.TopicID, p.HighWatermark = asked.Topics[0].TopicID, int64(end)
	p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = 9, int32(epoch)+1
	topic.Partitions = append(topic.Partitions, p)
	resp.Topics = append(resp.Topics, topic)
	node := kmsg.NewFetchResponseBroker()
	node.NodeID, node.Host, node.Port = 9, "h9", 9093
	resp.Brokers = append(resp.Brokers, node)
	return resp
}
