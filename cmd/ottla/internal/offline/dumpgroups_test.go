package offline

import (
	"bytes"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/protocol/schema"
	"ottla/storage/vfs"
)

func TestDumpTellsOfMembers(t *testing.T) {
	subscription := kmsg.ConsumerMemberMetadata{
		Version: 2, Topics: []string{"a", "b"}, Generation: 6,
		OwnedPartitions: []kmsg.ConsumerMemberMetadataOwnedPartition{{Topic: "a", Partitions: []int32{0, 1}}},
	}
	assignment := kmsg.ConsumerMemberAssignment{Topics: []kmsg.ConsumerMemberAssignmentTopic{{Topic: "a", Partitions: []int32{1}}, {Topic: "b", Partitions: []int32{0}}}}
	instance := "host-1"
	value := schema.GroupMetadataValue{ProtocolType: "consumer", Generation: 7, Members: []schema.GroupMetadataMemberMetadata{
		{MemberID: "m1", GroupInstanceID: &instance, Subscription: subscription.AppendTo(nil), Assignment: assignment.AppendTo(nil)},
		{MemberID: "m2", Subscription: []byte{9}, Assignment: nil},
		{MemberID: "m3", Subscription: subscription.AppendTo(nil), Assignment: []byte("x")},
	}}
	dumped := dumpGroup(t, value)
	for _, want := range []string{
		"\n    member=\"m1\" instance=\"host-1\" subscribed=[\"a\" \"b\"] owned=\"a\"[0 1] ownedAt=6 assigned=[\"a\"[1] \"b\"[0]]\n",
		"\n    member=\"m2\" subscribed=(not as consumers write it) assigned=[]\n",
		" assigned=(not as consumers write it)\n",
	} {
		if !strings.Contains(dumped, want) {
			t.Errorf("no %q in\n%s", want, dumped)
		}
	}
	value.ProtocolType = "connect" // whose members speak another format
	if dumped := dumpGroup(t, value); strings.Contains(dumped, "member=") {
		t.Error(dumped)
	}
}

func dumpGroup(t *testing.T, value schema.GroupMetadataValue) string {
	t.Helper()
	builder := record.NewBuilder(record.PlainOptions())
	builder.Append(1, schema.AppendKey(nil, &schema.GroupMetadataKey{Group: "g"}), schema.AppendValue(nil, &value, 3), nil)
	m := vfs.NewMem(nil)
	const name = "__consumer_offsets-3/00000000000000000000.log"
	put(t, m, name, string(builder.Build(compress.NewPool())))
	var out bytes.Buffer
	if err := Dump(&out, m, name, DumpOptions{Deep: true}); err != nil {
		t.Fatal(err, out.String())
	}
	return out.String()
}
