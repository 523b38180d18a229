package metrics

import (
	"math"
	"time"

	"ottla/controller/group"
	"ottla/protocol"
	"ottla/storage/partition"
	"ottla/storage/replica"
)

var (
	groupCount       = gauge("kafka_coordinator_group_groupmetadatamanager_numgroups", "Groups of the classic protocol that this node coordinates.")
	groupKinds       = gauge("kafka_server_group_coordinator_metrics_group_count", "Groups that this node coordinates, by protocol.", "protocol")
	groupConsumers   = gauge("kafka_server_group_coordinator_metrics_consumer_group_count", "Of those of the protocol consumer, by state.", "state")
	groupClassics    = gauge("kafka_server_group_coordinator_metrics_classic_group_count", "Of those of the classic protocol, by state.", "state")
	groupOffsetCount = gauge("kafka_server_group_coordinator_metrics_offset_count", "The same as kafka_coordinator_group_groupmetadatamanager_numoffsets.")
	groupOffsets     = gauge("kafka_coordinator_group_groupmetadatamanager_numoffsets", "Their committed offsets; absent if there are too many to ask for.")
	groupPartitions  = gauge("kafka_server_group_coordinator_metrics_num_partitions", "Partitions of __consumer_offsets that this node coordinates.", "state")
	groupUnanswered  = gauge("ottla_metrics_groups_unanswered", "Partitions of __consumer_offsets whose coordinator gave no answer in time; the series of its groups are absent.")
	groupMembers     = gauge("kafka_consumergroup_members", "Members; told by the group's coordinator, as all of these.", "consumergroup")
	groupOffset      = gauge("kafka_consumergroup_current_offset", "The committed offset.", "consumergroup", "topic", "partition")
	groupOffsetSum   = gauge("kafka_consumergroup_current_offset_sum", "The committed offsets of a topic, summed.", "consumergroup", "topic")
	groupLag         = gauge("kafka_consumergroup_lag", "The high watermark less the committed offset; NaN: not known here.", "consumergroup", "topic", "partition")
	groupLagSum      = gauge("kafka_consumergroup_lag_sum", "The same of a topic, summed.", "consumergroup", "topic")
	groupLagSeconds  = gauge("kafka_consumergroup_group_lag_seconds", "The age of the first record that is not consumed; 0: there is none; NaN: not known here.", "group", "topic", "partition")
	groupLagSecondsN = gauge("kafka_consumergroup_group_max_lag_seconds", "The most of these; NaN if one is not known.", "group")
)

// The kinds of groups.
const (
	classicGroup  = "classic"
	consumerGroup = "consumer"
)

// consumerStates are the states of a group of the protocol consumer.
var consumerStates = []string{"Empty", "Assigning", "Reconciling", "Stable", "Dead"}

// groupStates are the names by which Kafka counts groups of the classic protocol, and
// the states they count.
var groupStates = []struct {
	state string
	count *family
}{
	{"PreparingRebalance", groupStateCount("preparingrebalance")},
	{"CompletingRebalance", groupStateCount("completingrebalance")},
	{"Stable", groupStateCount("stable")},
	{"Dead", groupStateCount("dead")},
	{"Empty", groupStateCount("empty")},
}

func groupStateCount(name string) *family {
	return gauge("kafka_coordinator_group_groupmetadatamanager_numgroups"+name, "Of these groups, those in the state of the name.")
}

// survey asks every coordinator of this node, and waits a while. Those that do not
// answer are counted.
func (c *Collector) survey(now time.Time) (answers []*group.Surveyed, unanswered int) {
	partitions := c.source.Groups.Partitions()
	replies := make(chan *group.Surveyed, len(partitions)) // room for those who come too late
	for _, partition := range partitions {
		c.source.Groups.Submit(now, partition, group.Survey{MaxOffsets: c.source.PartitionsMax}, func(reply any, err error) {
			surveyed, _ := reply.(*group.Surveyed)
			replies <- surveyed // nil: it is loading, or it failed
		})
	}
	patience := time.NewTimer(c.source.Patience)
	defer patience.Stop()
	for range partitions {
		select {
		case surveyed := <-replies:
			if surveyed == nil {
				unanswered++
			} else {
				answers = append(answers, surveyed)
			}
		case <-patience.C:
			return answers, len(partitions) - len(answers)
		}
	}
	return answers, unanswered
}

func (c *Collector) collectGroups(p page, now time.Time, local []replica.Description, answers []*group.Surveyed) {
	loading, active, failed := c.source.Groups.Counts()
	p.put(groupPartitions, float64(loading), "loading")
	p.put(groupPartitions, float64(active), "active")
	p.put(groupPartitions, float64(failed), "failed")
	kinds, states := map[string]int{}, map[[2]string]int{} // the latter by kind and state
	groups, offsets, tooMany := 0, 0, false
	for _, answer := range answers {
		groups += len(answer.Groups)
		tooMany = tooMany || answer.TooMany
		for i := range answer.Groups {
			kinds[answer.Groups[i].Kind]++
			states[[2]string{answer.Groups[i].Kind, answer.Groups[i].State}]++
			offsets += len(answer.Groups[i].Offsets)
		}
	}
	p.put(groupCount, float64(kinds[classicGroup]))
	for _, of := range groupStates {
		p.put(of.count, float64(states[[2]string{classicGroup, of.state}]))
		p.put(groupClassics, float64(states[[2]string{classicGroup, of.state}]), of.state)
	}
	for _, kind := range []string{classicGroup, consumerGroup} {
		p.put(groupKinds, float64(kinds[kind]), kind)
	}
	for _, state := range consumerStates {
		p.put(groupConsumers, float64(states[[2]string{consumerGroup, state}]), state)
	}
	if !tooMany {
		p.put(groupOffsets, float64(offsets))
		p.put(groupOffsetCount, float64(offsets))
	}
	detailed := !tooMany && offsets <= c.source.PartitionsMax
	p.put(partitionSeries, oneIf(detailed), "offsets")
	if groups <= c.source.PartitionsMax {
		c.collectLags(p, now, local, answers, detailed)
	}
}

// lag is how far a group is behind in one partition.
type lag struct {
	records, seconds float64 // NaN: not known
}

// collectLags makes the series of each group. There are at most PartitionsMax.
func (c *Collector) collectLags(p page, now time.Time, local []replica.Description, answers []*group.Surveyed, detailed bool) {
	at := make(map[protocol.TopicPartition]*replica.Description, len(local))
	for i := range local {
		at[local[i].Partition] = &local[i]
	}
	c.firsts.begin(c.source, now)
	for _, answer := range answers {
		for i := range answer.Groups {
			for _, o := range answer.Groups[i].Offsets {
				c.firsts.want(at[o.Partition], o.Offset)
			}
		}
	}
	c.firsts.read()
	for _, answer := range answers {
		for i := range answer.Groups {
			g := &answer.Groups[i]
			p.put(groupMembers, float64(g.Members), g.Name)
			if !answer.TooMany {
				c.collectGroup(p, now, g, at, detailed)
			}
		}
	}
}

func (c *Collector) collectGroup(p page, now time.Time, g *group.SurveyedGroup, at map[protocol.TopicPartition]*replica.Description, detailed bool) {
	if len(g.Offsets) == 0 {
		return
	}
	var records, offsets, most float64
	for i, o := range g.Offsets {
		l := c.lag(now, at[o.Partition], o.Offset)
		topic := o.Partition.Topic
		records += l.records
		offsets += float64(o.Offset)
		most = larger(most, l.seconds)
		if detailed {
			labels := []string{g.Name, topic, number(o.Partition.Partition)}
			p.put(groupOffset, float64(o.Offset), labels...)
			p.put(groupLag, l.records, labels...)
			p.put(groupLagSeconds, l.seconds, labels...)
		}
		if i == len(g.Offsets)-1 || g.Offsets[i+1].Partition.Topic != topic {
			p.put(groupLagSum, records, g.Name, topic)
			p.put(groupOffsetSum, offsets, g.Name, topic)
			records, offsets = 0, 0
		}
	}
	p.put(groupLagSecondsN, most, g.Name)
}

// larger is the larger number, or NaN if one is.
func larger(a, b float64) float64 {
	if math.IsNaN(a) || a > b {
		return a
	}
	return b
}

// lag compares a committed offset with the partition's leader, if that is here.
func (c *Collector) lag(now time.Time, d *replica.Description, committed protocol.Offset) lag {
	switch {
	case d == nil || d.View.Role != partition.Leader:
		return lag{math.NaN(), math.NaN()}
	case committed >= d.HighWatermark:
		return lag{}
	}
	l := lag{float64(d.HighWatermark - committed), math.NaN()}
	if timestampMs, known := c.firsts.of(d, committed); known {
		l.seconds = max(0, float64(now.UnixMilli()-timestampMs)/1000)
	}
	return l
}
