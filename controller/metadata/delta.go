package metadata

import (
	"fmt"
	"slices"

	"ottla/protocol"
	"ottla/protocol/schema"
)

// Delta is an Image in the making. Records are replayed into it one after the
// other; Build gives the Image so far, and Changes what is new against the
// Image that the Delta began with. A Delta is of one goroutine.
type Delta struct {
	base *Image
	next Image
	// before is next as it was when the open metadata transaction began.
	before *Image
	// editor made those nodes of next that no Image has yet. Whoever copies
	// next takes a new one, or the copy would change under its owner.
	editor *editor
}

// NewDelta begins with an Image, which stays as it is.
func NewDelta(base *Image) *Delta { return &Delta{base: base, next: *base, editor: new(editor)} }

// Base is the Image that the Delta began with.
func (d *Delta) Base() *Image { return d.base }

// InTransaction tells whether a metadata transaction has begun and not ended.
// What Build gives meanwhile must not be published.
func (d *Delta) InTransaction() bool { return d.before != nil }

// Build gives the Image of all records replayed so far. The Delta can go on.
func (d *Delta) Build(provenance Provenance) *Image {
	image := d.next
	d.editor = new(editor)
	image.provenance = provenance
	return &image
}

// Replay applies the record at an offset. An error says which record it is and
// why it does not fit; the Delta is then of no use any more, for what follows
// would stand on a hole.
func (d *Delta) Replay(offset protocol.Offset, epoch protocol.LeaderEpoch, record schema.MetadataRecord) error {
	if err := d.apply(record); err != nil {
		return fmt.Errorf("the metadata record at offset %d, a %s, cannot be applied: %w", offset, schema.TypeName(record), err)
	}
	d.next.provenance.Offset, d.next.provenance.Epoch = offset, epoch
	return nil
}

func (d *Delta) apply(record schema.MetadataRecord) error {
	switch r := record.(type) {
	case *schema.TopicRecord:
		return d.addTopic(r)
	case *schema.RemoveTopicRecord:
		return d.removeTopic(r)
	case *schema.PartitionRecord:
		return d.setPartition(r)
	case *schema.PartitionChangeRecord:
		return d.changePartition(r)
	case *schema.ClearElrRecord:
		return d.clearELR(r)
	case *schema.RegisterBrokerRecord:
		d.next.brokers = d.next.brokers.with(d.editor, r.BrokerID, newBroker(r))
	case *schema.UnregisterBrokerRecord:
		d.next.brokers = d.next.brokers.without(d.editor, r.BrokerID)
		return refuseTags(r.UnknownTags)
	case *schema.FenceBrokerRecord:
		return d.fence(r.ID, r.Epoch, true, r.UnknownTags)
	case *schema.UnfenceBrokerRecord:
		return d.fence(r.ID, r.Epoch, false, r.UnknownTags)
	case *schema.BrokerRegistrationChangeRecord:
		return d.changeBroker(r)
	case *schema.RegisterControllerRecord:
		d.next.controllers = d.next.controllers.with(d.editor, r.ControllerID, newController(r))
	case *schema.UnregisterControllerRecord:
		d.next.controllers = d.next.controllers.without(d.editor, r.ControllerID)
		return refuseTags(r.UnknownTags)
	case *schema.ConfigRecord:
		d.setConfig(r)
	case *schema.FeatureLevelRecord:
		return d.setFeature(r)
	case *schema.NoOpRecord, *schema.ZkMigrationStateRecord:
		// Kafka 4 ignores the state of a migration that is over.
	default:
		return d.applyKept(record)
	}
	return nil
}

// applyKept applies what is kept for others, and the marks of transactions.
func (d *Delta) applyKept(record schema.MetadataRecord) error {
	next := &d.next
	switch r := record.(type) {
	case *schema.BeginTransactionRecord:
		return d.begin()
	case *schema.EndTransactionRecord:
		return d.end(false)
	case *schema.AbortTransactionRecord:
		return d.end(true)
	case *schema.ProducerIdsRecord:
		next.nextProducerID = r.NextProducerID
		return refuseTags(r.UnknownTags)
	case *schema.AccessControlEntryRecord:
		next.acls = next.acls.with(d.editor, r.ID, r)
	case *schema.RemoveAccessControlEntryRecord:
		if _, ok := next.acls.Get(r.ID); !ok {
			return fmt.Errorf("there is no access control entry %s", r.ID)
		}
		next.acls = next.acls.without(d.editor, r.ID)
	case *schema.ClientQuotaRecord:
		if key := quotaKey(r); r.Remove {
			next.quotas = next.quotas.without(d.editor, key)
		} else {
			next.quotas = next.quotas.with(d.editor, key, r)
		}
	case *schema.UserScramCredentialRecord:
		next.scram = next.scram.with(d.editor, ScramKey{r.Mechanism, r.Name}, r)
	case *schema.RemoveUserScramCredentialRecord:
		next.scram = next.scram.without(d.editor, ScramKey{r.Mechanism, r.Name})
	case *schema.DelegationTokenRecord:
		next.tokens = next.tokens.with(d.editor, r.TokenID, r)
	case *schema.RemoveDelegationTokenRecord:
		next.tokens = next.tokens.without(d.editor, r.TokenID)
	default:
		return fmt.Errorf("this program does not know what to do with it")
	}
	return nil
}

func (d *Delta) begin() error {
	if d.before != nil {
		return fmt.Errorf("a metadata transaction is open already")
	}
	before := d.next
	d.editor = new(editor)
	d.before = &before
	return nil
}

func (d *Delta) end(abort bool) error {
	if d.before == nil {
		return fmt.Errorf("no metadata transaction is open")
	}
	if abort {
		d.next = *d.before
	}
	d.before = nil
	return nil
}

func (d *Delta) addTopic(r *schema.TopicRecord) error {
	if other := d.next.Topic(r.Name); other != nil {
		return fmt.Errorf("the topic %q exists with the id %s", r.Name, other.ID)
	}
	if other := d.next.TopicByID(r.TopicID); other != nil {
		return fmt.Errorf("the id %s is that of the topic %q", r.TopicID, other.Name)
	}
	d.putTopic(newTopic(r))
	return nil
}

func (d *Delta) putTopic(topic *Topic) {
	d.next.topicsByName = d.next.topicsByName.with(d.editor, topic.Name, topic)
	d.next.topicsByID = d.next.topicsByID.with(d.editor, topic.ID, topic)
}

// removeTopic removes the topic's configs too: Kafka writes no records for that.
func (d *Delta) removeTopic(r *schema.RemoveTopicRecord) error {
	topic, err := d.topic(r.TopicID)
	if err != nil {
		return err
	}
	d.next.topicsByName = d.next.topicsByName.without(d.editor, topic.Name)
	d.next.topicsByID = d.next.topicsByID.without(d.editor, topic.ID)
	d.next.partitions -= topic.PartitionCount()
	d.next.configs = d.next.configs.without(d.editor, ConfigResource{TopicConfig, topic.Name})
	return refuseTags(r.UnknownTags)
}

func (d *Delta) topic(id protocol.TopicID) (*Topic, error) {
	topic := d.next.TopicByID(id)
	if topic == nil {
		return nil, fmt.Errorf("there is no topic with the id %s", id)
	}
	return topic, nil
}

func (d *Delta) setConfig(r *schema.ConfigRecord) {
	resource := ConfigResource{r.ResourceType, r.ResourceName}
	config, _ := d.next.configs.Get(resource)
	if config = config.with(r); config == nil {
		d.next.configs = d.next.configs.without(d.editor, resource)
		return
	}
	d.next.configs = d.next.configs.with(d.editor, resource, config)
}

// setFeature removes a feature at level 0, and leaves out kraft.version, whose
// truth is in the log's control records.
func (d *Delta) setFeature(r *schema.FeatureLevelRecord) error {
	switch {
	case r.Name == KRaftVersionFeature:
		return nil
	case r.Name == MetadataVersionFeature && !MetadataVersion(r.FeatureLevel).Known():
		return fmt.Errorf("metadata.version %d is not known: this program knows %d (%s) to %d (%s)", r.FeatureLevel,
			OldestMetadataVersion, OldestMetadataVersion, MaxMetadataVersion, MaxMetadataVersion)
	case r.FeatureLevel == 0:
		d.next.features = d.next.features.without(d.editor, r.Name)
	default:
		d.next.features = d.next.features.with(d.editor, r.Name, r)
	}
	return nil
}

func (d *Delta) registered(id protocol.NodeID, epoch protocol.BrokerEpoch) (*Broker, error) {
	broker := d.next.Broker(id)
	if broker == nil {
		return nil, fmt.Errorf("broker %d is not registered", id)
	}
	if broker.Epoch != epoch {
		return nil, fmt.Errorf("broker %d is registered with the epoch %d and not %d", id, broker.Epoch, epoch)
	}
	return broker, nil
}

func (d *Delta) fence(id protocol.NodeID, epoch protocol.BrokerEpoch, fenced bool, tags []schema.Tag) error {
	broker, err := d.registered(id, epoch)
	if err != nil {
		return err
	}
	changed := *broker
	changed.Fenced = fenced
	d.next.brokers = d.next.brokers.with(d.editor, id, &changed)
	return refuseTags(tags)
}

func (d *Delta) changeBroker(r *schema.BrokerRegistrationChangeRecord) error {
	broker, err := d.registered(r.BrokerID, r.BrokerEpoch)
	if err != nil {
		return err
	}
	changed := *broker
	switch r.Fenced {
	case 0:
	case 1, -1:
		changed.Fenced = r.Fenced == 1
	default:
		return fmt.Errorf("the field fenced has the unknown value %d", r.Fenced)
	}
	switch r.InControlledShutdown {
	case 0:
	case 1:
		changed.InControlledShutdown = true
	default:
		return fmt.Errorf("the field inControlledShutdown has the unknown value %d", r.InControlledShutdown)
	}
	if len(r.LogDirs) > 0 {
		changed.LogDirs = sortedDirectories(r.LogDirs)
	}
	if r.CordonedLogDirs != nil {
		changed.CordonedLogDirs = r.CordonedLogDirs
	}
	if !broker.equal(&changed) {
		d.next.brokers = d.next.brokers.with(d.editor, r.BrokerID, &changed)
	}
	return refuseTags(r.UnknownTags)
}

// refuseTags refuses a change that says more than is understood and that is
// not itself kept: dropping the rest would lose state in silence. Apache Kafka
// gives records that can say more a new version, so this is not met in practice.
func refuseTags(tags []schema.Tag) error {
	if len(tags) == 0 {
		return nil
	}
	return fmt.Errorf("it has the unknown tagged field %d", tags[0].Number)
}

func equalTags(a, b []schema.Tag) bool {
	return slices.EqualFunc(a, b, func(x, y schema.Tag) bool {
		return x.Number == y.Number && string(x.Value) == string(y.Value)
	})
}
