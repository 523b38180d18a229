package datadir

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// JoinStreams has a member join a streams group and leave it again, so that the group's records are there.
func JoinStreams(ctx context.Context, addr string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer client.Close()
	for _, epoch := range []int32{0, -1} {
		request := kmsg.NewPtrStreamsGroupHeartbeatRequest()
		request.Group, request.MemberID, request.MemberEpoch = "g-streams", "AAAAAAAAAAAAAAAAAAAAAQ", epoch
		if epoch == 0 {
			topology := kmsg.NewStreamsGroupHeartbeatRequestTopology()
			sub := kmsg.NewStreamsGroupHeartbeatRequestTopologySubtopology()
			sub.SubtopologyID, sub.SourceTopics = "0", []string{"codec-none"}
			topology.Subtopologies = append(topology.Subtopologies, sub)
			process := "process"
			request.Topology, request.ProcessID, request.RebalanceTimeoutMillis = &topology, &process, 10_000
			request.ActiveTasks, request.StandbyTasks, request.WarmupTasks = []kmsg.TaskIDs{}, []kmsg.TaskIDs{}, []kmsg.TaskIDs{}
			request.ClientTags = []kmsg.StreamsGroupHeartbeatRequestClientTag{}
		}
		got, err := client.Broker(1).RetriableRequest(ctx, request)
		if err != nil {
			return err
		}
		if response := got.(*kmsg.StreamsGroupHeartbeatResponse); response.ErrorCode != 0 {
			return fmt.Errorf("streams group, member epoch %d: error %d %s", epoch, response.ErrorCode, message(response.ErrorMessage))
		}
	}
	return nil
}

func message(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
