package consumer

import (
	"runtime"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzEmbedded reads any bytes as what members of the classic protocol tell each other: within bounds, and what is read can
// be written and read again.
func FuzzEmbedded(f *testing.F) {
	metadata := kmsg.ConsumerMemberMetadata{Version: 3, Topics: []string{"a", "b"}, UserData: []byte{1}, Generation: 7}
	metadata.OwnedPartitions = []kmsg.ConsumerMemberMetadataOwnedPartition{{Topic: "a", Partitions: []int32{0, 2}}}
	assignment := kmsg.ConsumerMemberAssignment{Version: 1, Topics: []kmsg.ConsumerMemberAssignmentTopic{{Topic: "a", Partitions: []int32{0, 1}}}}
	f.Add(metadata.AppendTo(nil))
	f.Add(assignment.AppendTo(nil))
	f.Add([]byte{0, 1, 0, 0, 0, 100, 0, 0, 0, 0})
	f.Add([]byte{0, 0, 0x7f, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, message []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		subscription, subscriptionErr := readSubscription(message)
		assigned, assignmentErr := readAssignment(message)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 2*uint64(64*len(message)+64<<10) {
			t.Errorf("%d bytes were allocated for %d", used, len(message))
		}
		if subscriptionErr == nil && subscription.Version <= highestEmbedded {
			if again, err := readSubscription(subscription.AppendTo(nil)); err != nil || len(again.Topics) != len(subscription.Topics) {
				t.Errorf("%+v is read again as %+v, %v", subscription, again, err)
			}
		}
		if assignmentErr == nil && assigned.Version <= highestEmbedded {
			if again, err := readAssignment(assigned.AppendTo(nil)); err != nil || len(again.Topics) != len(assigned.Topics) {
				t.Errorf("%+v is read again as %+v, %v", assigned, again, err)
			}
		}
	})
}
