package metadata

import (
	"maps"
	"slices"
	"strings"

	"ottla/protocol"
	"ottla/protocol/schema"
)

// Changes is what two Images do not have in common. Every list is in order:
// topics by name, the others by their keys.
type Changes struct {
	Topics        []TopicChange     // new topics and changed ones
	DeletedTopics []*Topic          // as they were; a topic made again under its name is here too
	Brokers       []protocol.NodeID // registered, changed or gone
	Controllers   []protocol.NodeID // registered, changed or gone
	Configs       []ConfigResource
	Features      []string
	ProducerIDs   bool
	ClientQuotas  bool
	ACLs          bool
	Scram         bool
	Tokens        bool
}

// TopicChange is a topic whose partitions are not what they were.
type TopicChange struct {
	Old        *Topic // nil: the topic is new
	New        *Topic
	Partitions []int32 // new or changed, ascending
}

// Empty tells whether nothing changed.
func (c *Changes) Empty() bool {
	return len(c.Topics) == 0 && len(c.DeletedTopics) == 0 && len(c.Brokers) == 0 && len(c.Controllers) == 0 &&
		len(c.Configs) == 0 && len(c.Features) == 0 &&
		!c.ProducerIDs && !c.ClientQuotas && !c.ACLs && !c.Scram && !c.Tokens
}

// Changes compares the Delta so far with its base. The topics in it are those of
// the moment until Build is called, which makes them final.
func (d *Delta) Changes() Changes { return Diff(d.base, &d.next) }

// ChangedTopics gives new topics and those with changed partitions, by name.
func (d *Delta) ChangedTopics() []TopicChange {
	changed, _ := diffTopics(d.base, &d.next)
	return changed
}

// DeletedTopics gives the topics of the base that are gone, by name.
func (d *Delta) DeletedTopics() []*Topic {
	_, deleted := diffTopics(d.base, &d.next)
	return deleted
}

// ChangedBrokers gives the brokers that registered, changed or are gone, by id.
func (d *Delta) ChangedBrokers() []protocol.NodeID {
	return changedKeys(d.base.brokers, d.next.brokers, (*Broker).equal)
}

// ChangedConfigs gives the resources whose configs changed, by kind and name.
func (d *Delta) ChangedConfigs() []ConfigResource {
	return changedKeys(d.base.configs, d.next.configs, (*resourceConfig).equal)
}

// ChangedFeatures gives the features whose finalized level changed, by name.
func (d *Delta) ChangedFeatures() []string {
	return changedKeys(d.base.features, d.next.features, equalFeature)
}

// Diff compares two Images. Between one and another that was made of it the
// cost goes with the number of changes; between unrelated ones, as after a
// snapshot was loaded, with their size. What is equal is not reported, whatever
// way it came about.
func Diff(before, after *Image) Changes {
	topics, deleted := diffTopics(before, after)
	return Changes{
		Topics:        topics,
		DeletedTopics: deleted,
		Brokers:       changedKeys(before.brokers, after.brokers, (*Broker).equal),
		Controllers:   changedKeys(before.controllers, after.controllers, (*Controller).equal),
		Configs:       changedKeys(before.configs, after.configs, (*resourceConfig).equal),
		Features:      changedKeys(before.features, after.features, equalFeature),
		ProducerIDs:   before.nextProducerID != after.nextProducerID,
		ClientQuotas:  len(changedKeys(before.quotas, after.quotas, equalRecords)) > 0,
		ACLs:          len(changedKeys(before.acls, after.acls, equalRecords)) > 0,
		Scram:         len(changedKeys(before.scram, after.scram, equalRecords)) > 0,
		Tokens:        len(changedKeys(before.tokens, after.tokens, equalRecords)) > 0,
	}
}

func diffTopics(before, after *Image) (changed []TopicChange, deleted []*Topic) {
	diffMaps(before.topicsByID, after.topicsByID, func(_ protocol.TopicID, old *Topic, was bool, now *Topic, is bool) {
		if !is {
			deleted = append(deleted, old)
			return
		}
		change := TopicChange{New: now}
		if was {
			change.Old = old
			change.Partitions = changedKeys(old.partitions, now.partitions, (*Partition).equal)
			if len(change.Partitions) == 0 && equalTags(old.UnknownTags, now.UnknownTags) {
				return
			}
		} else {
			for n := range now.Partitions() {
				change.Partitions = append(change.Partitions, n)
			}
		}
		changed = append(changed, change)
	})
	slices.SortFunc(changed, func(a, b TopicChange) int { return strings.Compare(a.New.Name, b.New.Name) })
	slices.SortFunc(deleted, func(a, b *Topic) int { return strings.Compare(a.Name, b.Name) })
	return changed, deleted
}

// changedKeys gives the keys that are in one map only or have unequal values.
func changedKeys[K any, V comparable](before, after Map[K, V], equal func(a, b V) bool) []K {
	var keys []K
	diffMaps(before, after, func(key K, old V, was bool, now V, is bool) {
		if !was || !is || !equal(old, now) {
			keys = append(keys, key)
		}
	})
	return keys
}

func equalFeature(a, b *schema.FeatureLevelRecord) bool { return equalRecords(a, b) }

// equalRecords compares what is kept as records by their bytes. All of these
// have a version 0 that holds everything.
func equalRecords[R schema.MetadataRecord](a, b R) bool {
	return string(a.AppendTo(nil, 0)) == string(b.AppendTo(nil, 0))
}

func (c *resourceConfig) equal(other *resourceConfig) bool {
	return maps.Equal(c.values, other.values) && slices.EqualFunc(c.records, other.records,
		func(a, b *schema.ConfigRecord) bool { return equalTags(a.UnknownTags, b.UnknownTags) })
}

func (b *Broker) equal(other *Broker) bool {
	return b.ID == other.ID && b.Epoch == other.Epoch && b.IncarnationID == other.IncarnationID &&
		equalEndpoints(b.Endpoints, other.Endpoints) && equalRanges(b.Features, other.Features) &&
		equalText(b.Rack, other.Rack) && b.Fenced == other.Fenced &&
		b.InControlledShutdown == other.InControlledShutdown && b.IsMigratingZK == other.IsMigratingZK &&
		slices.Equal(b.LogDirs, other.LogDirs) && slices.Equal(b.CordonedLogDirs, other.CordonedLogDirs) &&
		(b.CordonedLogDirs == nil) == (other.CordonedLogDirs == nil) &&
		equalTags(b.UnknownTags, other.UnknownTags)
}

func (c *Controller) equal(other *Controller) bool {
	return c.ID == other.ID && c.IncarnationID == other.IncarnationID && c.ZkMigrationReady == other.ZkMigrationReady &&
		equalEndpoints(c.Endpoints, other.Endpoints) && equalRanges(c.Features, other.Features) &&
		equalTags(c.UnknownTags, other.UnknownTags)
}

func equalText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

func equalEndpoints(a, b []Endpoint) bool {
	return slices.EqualFunc(a, b, func(x, y Endpoint) bool {
		return x.Name == y.Name && x.Host == y.Host && x.Port == y.Port &&
			x.SecurityProtocol == y.SecurityProtocol && equalTags(x.UnknownTags, y.UnknownTags)
	})
}

func equalRanges(a, b []SupportedRange) bool {
	return slices.EqualFunc(a, b, func(x, y SupportedRange) bool {
		return x.Name == y.Name && x.Min == y.Min && x.Max == y.Max && equalTags(x.UnknownTags, y.UnknownTags)
	})
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Equal tells whether two Images hold the same, whatever their provenance.
func (i *Image) Equal(other *Image) bool {
	changes := Diff(i, other)
	return changes.Empty()
}
