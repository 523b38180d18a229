package group

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/schema"
)

func showKey(key schema.Key) string {
	switch key := key.(type) {
	case *schema.OffsetCommitKey:
		return fmt.Sprintf("offset %s/%s-%d", key.Group, key.Topic, key.Partition)
	case *schema.GroupMetadataKey:
		return "group " + key.Group
	}
	return showConsumerKey(key)
}

// showTime gives a time of a record, since the story began.
func (s *story) showTime(ms int64) string {
	if s.timeless {
		return "then"
	}
	return time.UnixMilli(ms).Sub(began).String()
}

func (s *story) showValue(value schema.Value, version int16) string {
	switch v := value.(type) {
	case *schema.OffsetCommitValue:
		text := fmt.Sprintf("v%d %d epoch %d %q", version, v.Offset, v.LeaderEpoch, v.Metadata)
		if v.ExpireTimestamp >= 0 {
			text += " until " + s.showTime(v.ExpireTimestamp)
		}
		if !v.TopicID.IsZero() {
			text += " id " + s.showTopicID(v.TopicID)
		}
		return text
	case *schema.GroupMetadataValue:
		text := fmt.Sprintf("v%d %q generation %d, %s, leader %s, since %s", version, v.ProtocolType, v.Generation, or(v.Protocol), or(v.Leader), s.showTime(v.CurrentStateTimestamp))
		for _, m := range v.Members {
			text += fmt.Sprintf("\n  %s %s (%s %s %d/%d): %s", m.MemberID, instance(m.GroupInstanceID), m.ClientID, m.ClientHost, m.SessionTimeout, m.RebalanceTimeout, showBytes(m.Assignment))
		}
		return text
	}
	return s.showConsumerValue(value)
}

func (s *story) showTopicID(id protocol.TopicID) string {
	if s.timeless {
		return "of the topic"
	}
	return strings.TrimRight(string(id[:]), "\x00")
}

// showBytes prints text as it is and other bytes quoted.
func showBytes(b []byte) string {
	if bytes.IndexByte(b, 0) < 0 {
		return string(b)
	}
	return fmt.Sprintf("%q", b)
}

func or(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

func instance(id *string) string {
	if id == nil {
		return "dynamic"
	}
	return "static " + *id
}

func showCode(c int16) string { return protocol.ErrorCode(c).String() }

func (s *story) showReply(reply kmsg.Response) string {
	switch r := reply.(type) {
	case *kmsg.ConsumerGroupHeartbeatResponse:
		return s.showBeat(r)
	case *kmsg.ConsumerGroupDescribeResponse:
		return showConsumers(r)
	case *kmsg.TxnOffsetCommitResponse:
		return showTxnCommit(r)
	case *kmsg.JoinGroupResponse:
		return showJoin(r)
	case *kmsg.SyncGroupResponse:
		if r.ErrorCode != 0 {
			return fmt.Sprintf("sync v%d: %s\n", r.Version, showCode(r.ErrorCode))
		}
		return fmt.Sprintf("sync v%d: %s/%s %q\n", r.Version, or(r.ProtocolType), or(r.Protocol), r.MemberAssignment)
	case *kmsg.HeartbeatResponse:
		return showCode(r.ErrorCode) + "\n"
	case *kmsg.LeaveGroupResponse:
		text := showCode(r.ErrorCode) + "\n"
		for _, m := range r.Members {
			text += fmt.Sprintf("  %q %s: %s\n", m.MemberID, instance(m.InstanceID), showCode(m.ErrorCode))
		}
		return text
	case *kmsg.DescribeGroupsResponse:
		return showDescription(r)
	case *kmsg.ListGroupsResponse:
		var b strings.Builder
		for _, g := range r.Groups {
			fmt.Fprintf(&b, "%s %q %s %s\n", g.Group, g.ProtocolType, g.GroupState, g.GroupType)
		}
		return b.String()
	case *kmsg.DeleteGroupsResponse:
		var b strings.Builder
		for _, g := range r.Groups {
			fmt.Fprintf(&b, "%s: %s\n", g.Group, showCode(g.ErrorCode))
		}
		return b.String()
	}
	return showOffsets(reply)
}

func showJoin(r *kmsg.JoinGroupResponse) string {
	text := fmt.Sprintf("join v%d: ", r.Version)
	if r.ErrorCode != 0 {
		text += showCode(r.ErrorCode) + " "
	}
	text += fmt.Sprintf("member %q generation %d %s/%s leader %q", r.MemberID, r.Generation, or(r.ProtocolType), or(r.Protocol), r.LeaderID)
	if r.SkipAssignment {
		text += " skip assignment"
	}
	text += "\n"
	for _, m := range r.Members {
		text += fmt.Sprintf("  %s %s %q\n", m.MemberID, instance(m.InstanceID), m.ProtocolMetadata)
	}
	return text
}

func showDescription(r *kmsg.DescribeGroupsResponse) string {
	var b strings.Builder
	for _, g := range r.Groups {
		fmt.Fprintf(&b, "%s %s %q %q", g.Group, g.State, g.ProtocolType, g.Protocol)
		if g.ErrorCode != 0 {
			fmt.Fprintf(&b, " %s %q", showCode(g.ErrorCode), or(g.ErrorMessage))
		}
		b.WriteString("\n")
		for _, m := range g.Members {
			fmt.Fprintf(&b, "  %s %s %s %s %q %q\n", m.MemberID, instance(m.InstanceID), m.ClientID, m.ClientHost, m.ProtocolMetadata, m.MemberAssignment)
		}
	}
	return b.String()
}

func showOffsets(reply kmsg.Response) string {
	var b strings.Builder
	one := func(topic string, partition int32, offset int64, epoch int32, metadata *string, c int16) {
		fmt.Fprintf(&b, "  %s-%d: %d epoch %d %q %s\n", topic, partition, offset, epoch, or(metadata), showCode(c))
	}
	switch r := reply.(type) {
	case *kmsg.OffsetCommitResponse:
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				fmt.Fprintf(&b, "%s-%d: %s\n", t.Topic, p.Partition, showCode(p.ErrorCode))
			}
		}
	case *kmsg.OffsetFetchResponse:
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				one(t.Topic, p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, p.ErrorCode)
			}
		}
		for _, g := range r.Groups {
			fmt.Fprintf(&b, "group %q", g.Group)
			if g.ErrorCode != 0 {
				b.WriteString(" " + showCode(g.ErrorCode))
			}
			b.WriteString("\n")
			for _, t := range g.Topics {
				for _, p := range t.Partitions {
					one(t.Topic, p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, p.ErrorCode)
				}
			}
		}
	case *kmsg.OffsetDeleteResponse:
		if r.ErrorCode != 0 {
			return showCode(r.ErrorCode) + "\n"
		}
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				fmt.Fprintf(&b, "%s-%d: %s\n", t.Topic, p.Partition, showCode(p.ErrorCode))
			}
		}
	default:
		return fmt.Sprintf("%T\n", reply)
	}
	return b.String()
}
