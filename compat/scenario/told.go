package scenario

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ottla/compat/franz"
	"ottla/compat/suite"
)

// toldLimit is how long the server is asked about a client that has failed.
const toldLimit = 20 * time.Second

// told is what is known of a member: what it has read, and what its coordinator says of its group.
func (m *Member) told(ref *franz.Client) string {
	ctx, cancel := context.WithTimeout(context.Background(), toldLimit)
	defer cancel()
	var b strings.Builder
	fmt.Fprintf(&b, "a member of group %s has read %d records", m.group, m.read.Load())
	if last := m.last.Load(); last != 0 {
		fmt.Fprintf(&b, ", the last %.1f s ago", time.Since(time.UnixMilli(last)).Seconds())
	}
	if err := m.Alive(); err != nil {
		fmt.Fprintf(&b, "; %v", err)
	}
	fmt.Fprintf(&b, "\n%s\n%s", groupTold(ctx, ref, m.group), offsetsTold(ctx, ref, m.group, m.topic))
	if e, ok := m.client.(suite.Explainer); ok {
		b.WriteString("\n" + e.Explain())
	}
	return b.String()
}

// groupTold is a group as its coordinator describes it.
func groupTold(ctx context.Context, ref *franz.Client, group string) string {
	g, err := ref.ConsumerGroup(ctx, group)
	if err != nil {
		return fmt.Sprintf("the coordinator does not describe the group: %v", err)
	}
	var b strings.Builder
	protocol := "classic"
	if g.Consumer {
		protocol = fmt.Sprintf("consumer, epoch %d, assignor %s", g.Epoch, g.Assignor)
	}
	fmt.Fprintf(&b, "the coordinator says: %s (%s), %d members", g.State, protocol, len(g.Members))
	for _, id := range slices.Sorted(maps.Keys(g.Members)) {
		fmt.Fprintf(&b, "; %s at epoch %d has %v", id, g.Members[id].Epoch, g.Members[id].Partitions)
	}
	return b.String()
}

// offsetsTold is how far a group has committed, and where the log ends.
func offsetsTold(ctx context.Context, ref *franz.Client, group, topic string) string {
	committed, err := ref.Committed(ctx, group, topic)
	if err != nil {
		return fmt.Sprintf("what is committed cannot be read: %v", err)
	}
	partitions, err := ref.Partitions(ctx, topic)
	if err != nil {
		return fmt.Sprintf("%v is committed; the topic cannot be described: %v", committed, err)
	}
	var ends []string
	for p := range min(partitions, 8) {
		end, _, err := ref.ListOffset(ctx, topic, int32(p), suite.Latest)
		if err != nil {
			ends = append(ends, err.Error())
			continue
		}
		ends = append(ends, fmt.Sprint(end))
	}
	return fmt.Sprintf("%v is committed, the partitions end at %s", committed, strings.Join(ends, ", "))
}

// told is what is known of a client that produces and consumes.
func (f *flow) told() string {
	ctx, cancel := context.WithTimeout(context.Background(), toldLimit)
	defer cancel()
	end, _, err := f.on.Ref.ListOffset(ctx, f.topic, 0, suite.Latest)
	text := fmt.Sprintf("%d records were acknowledged, the last %s; %d were read, the last %s; the partition ends at %d (%v)",
		f.acked.n.Load(), f.acked.ago(), f.read.n.Load(), f.read.ago(), end, err)
	if e, ok := f.client.(suite.Explainer); ok {
		text += "\n" + e.Explain()
	}
	return text
}
