package offline

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol/schema"
)

// describeMembers says, a line each, what the members of a classic group of consumers subscribe to and have: the record holds both as
// bytes of the clients' own format (ConsumerProtocolSubscription and ConsumerProtocolAssignment).
func describeMembers(value schema.Value) string {
	group, ok := value.(*schema.GroupMetadataValue)
	if !ok || group.ProtocolType != "consumer" {
		return ""
	}
	var out strings.Builder
	for _, member := range group.Members {
		fmt.Fprintf(&out, "\n    member=%q", member.MemberID)
		if member.GroupInstanceID != nil {
			fmt.Fprintf(&out, " instance=%q", *member.GroupInstanceID)
		}
		out.WriteString(" subscribed=" + subscribed(member.Subscription) + " assigned=" + assigned(member.Assignment))
	}
	return out.String()
}

const notAConsumers = "(not as consumers write it)"

func subscribed(data []byte) string {
	var metadata kmsg.ConsumerMemberMetadata
	if err := metadata.ReadFrom(data); err != nil {
		return notAConsumers
	}
	text := fmt.Sprintf("%q", metadata.Topics)
	for _, owned := range metadata.OwnedPartitions {
		text += fmt.Sprintf(" owned=%q%v", owned.Topic, owned.Partitions)
	}
	if metadata.Generation >= 0 {
		text += fmt.Sprintf(" ownedAt=%d", metadata.Generation)
	}
	return text
}

func assigned(data []byte) string {
	if len(data) == 0 {
		return "[]"
	}
	var assignment kmsg.ConsumerMemberAssignment
	if err := assignment.ReadFrom(data); err != nil {
		return notAConsumers
	}
	topics := make([]string, len(assignment.Topics))
	for i, topic := range assignment.Topics {
		topics[i] = fmt.Sprintf("%q%v", topic.Topic, topic.Partitions)
	}
	return "[" + strings.Join(topics, " ") + "]"
}
