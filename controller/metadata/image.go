package metadata

import (
	"bytes"
	"cmp"
	"iter"

	"ottla/protocol"
	"ottla/protocol/schema"
)

// Provenance says up to which record an Image goes.
type Provenance struct {
	Offset      protocol.Offset      // of the last record; -1 for the empty Image
	Epoch       protocol.LeaderEpoch // of the leader that wrote it; -1 for the empty Image
	TimestampMs int64                // of the last batch; -1 for the empty Image
}

// Image is the cluster's metadata at one offset. It never changes; see the
// package comment for what callers may do with what they get out of it.
type Image struct {
	provenance     Provenance
	features       Map[string, *schema.FeatureLevelRecord]
	brokers        Map[protocol.NodeID, *Broker]
	controllers    Map[protocol.NodeID, *Controller]
	topicsByName   Map[string, *Topic]
	topicsByID     Map[protocol.TopicID, *Topic]
	partitions     int
	configs        Map[ConfigResource, *resourceConfig]
	quotas         Map[string, *schema.ClientQuotaRecord] // by quotaKey
	nextProducerID protocol.ProducerID
	acls           Map[protocol.UUID, *schema.AccessControlEntryRecord]
	scram          Map[ScramKey, *schema.UserScramCredentialRecord]
	tokens         Map[string, *schema.DelegationTokenRecord]
}

// Empty is the Image before the first record.
func Empty() *Image {
	return &Image{
		provenance:     Provenance{Offset: protocol.NoOffset, Epoch: protocol.NoLeaderEpoch, TimestampMs: -1},
		features:       NewMap[string, *schema.FeatureLevelRecord](cmp.Compare[string]),
		brokers:        NewMap[protocol.NodeID, *Broker](cmp.Compare[protocol.NodeID]),
		controllers:    NewMap[protocol.NodeID, *Controller](cmp.Compare[protocol.NodeID]),
		topicsByName:   NewMap[string, *Topic](cmp.Compare[string]),
		topicsByID:     NewMap[protocol.TopicID, *Topic](compareUUID),
		configs:        NewMap[ConfigResource, *resourceConfig](ConfigResource.compare),
		quotas:         NewMap[string, *schema.ClientQuotaRecord](cmp.Compare[string]),
		nextProducerID: protocol.NoProducerID,
		acls:           NewMap[protocol.UUID, *schema.AccessControlEntryRecord](compareUUID),
		scram:          NewMap[ScramKey, *schema.UserScramCredentialRecord](ScramKey.compare),
		tokens:         NewMap[string, *schema.DelegationTokenRecord](cmp.Compare[string]),
	}
}

func compareUUID(a, b protocol.UUID) int { return bytes.Compare(a[:], b[:]) }

// Provenance says up to which record the Image goes.
func (i *Image) Provenance() Provenance { return i.provenance }

// Topic finds a topic by name, or gives nil.
func (i *Image) Topic(name string) *Topic {
	topic, _ := i.topicsByName.Get(name)
	return topic
}

// TopicByID finds a topic by id, or gives nil.
func (i *Image) TopicByID(id protocol.TopicID) *Topic {
	topic, _ := i.topicsByID.Get(id)
	return topic
}

// Topics goes through the topics in the order of their names.
func (i *Image) Topics() iter.Seq[*Topic] { return values(i.topicsByName.All()) }

// TopicsFrom goes through the topics whose names are not below the one given,
// for answers that are cut into pages.
func (i *Image) TopicsFrom(name string) iter.Seq[*Topic] { return values(i.topicsByName.From(name)) }

// TopicCount counts the topics.
func (i *Image) TopicCount() int { return i.topicsByName.Len() }

// PartitionCount counts the partitions of all topics.
func (i *Image) PartitionCount() int { return i.partitions }

// Partition finds a partition by its topic's name and its number, or gives nil.
func (i *Image) Partition(tp protocol.TopicPartition) *Partition {
	topic := i.Topic(tp.Topic)
	if topic == nil {
		return nil
	}
	return topic.Partition(tp.Partition)
}

// Broker finds a registered broker, fenced or not, or gives nil.
func (i *Image) Broker(id protocol.NodeID) *Broker {
	broker, _ := i.brokers.Get(id)
	return broker
}

// Brokers goes through the registered brokers in the order of their ids.
func (i *Image) Brokers() iter.Seq[*Broker] { return values(i.brokers.All()) }

// BrokerCount counts the registered brokers, the fenced ones too.
func (i *Image) BrokerCount() int { return i.brokers.Len() }

// Controller finds a registered controller, or gives nil.
func (i *Image) Controller(id protocol.NodeID) *Controller {
	controller, _ := i.controllers.Get(id)
	return controller
}

// Controllers goes through the registered controllers in the order of their ids.
func (i *Image) Controllers() iter.Seq[*Controller] { return values(i.controllers.All()) }

// Features gives the finalized levels by name, metadata.version among them and
// kraft.version not: that one is in control records, which the quorum reads.
func (i *Image) Features() map[string]int16 {
	levels := make(map[string]int16, i.features.Len())
	for name, record := range i.features.All() {
		levels[name] = record.FeatureLevel
	}
	return levels
}

// Feature gives one finalized level; 0 is what is not finalized.
func (i *Image) Feature(name string) int16 {
	if record, ok := i.features.Get(name); ok {
		return record.FeatureLevel
	}
	return 0
}

// MetadataVersion is the finalized metadata.version; 0 before it is set.
func (i *Image) MetadataVersion() MetadataVersion {
	return MetadataVersion(i.Feature(MetadataVersionFeature))
}

// NextProducerID is the first producer id that no block contains yet; -1 before
// the first block.
func (i *Image) NextProducerID() protocol.ProducerID { return i.nextProducerID }

// ACLs goes through the access control entries in the order of their ids.
func (i *Image) ACLs() iter.Seq[*schema.AccessControlEntryRecord] { return values(i.acls.All()) }

// ACL finds an access control entry, or gives nil.
func (i *Image) ACL(id protocol.UUID) *schema.AccessControlEntryRecord {
	entry, _ := i.acls.Get(id)
	return entry
}

// ACLCount counts the access control entries.
func (i *Image) ACLCount() int { return i.acls.Len() }

// ClientQuotas goes through the quotas, those of one entity together.
func (i *Image) ClientQuotas() iter.Seq[*schema.ClientQuotaRecord] { return values(i.quotas.All()) }

// ClientQuotaCount counts the values of all quotas.
func (i *Image) ClientQuotaCount() int { return i.quotas.Len() }

// ScramKey names one SCRAM credential.
type ScramKey struct {
	Mechanism int8 // 1: SCRAM-SHA-256, 2: SCRAM-SHA-512
	User      string
}

func (k ScramKey) compare(other ScramKey) int {
	return cmp.Or(cmp.Compare(k.Mechanism, other.Mechanism), cmp.Compare(k.User, other.User))
}

// ScramCredential finds a credential, or gives nil.
func (i *Image) ScramCredential(key ScramKey) *schema.UserScramCredentialRecord {
	credential, _ := i.scram.Get(key)
	return credential
}

// ScramCredentials goes through the credentials by mechanism and user.
func (i *Image) ScramCredentials() iter.Seq[*schema.UserScramCredentialRecord] {
	return values(i.scram.All())
}

// DelegationToken finds a token by its id, or gives nil.
func (i *Image) DelegationToken(id string) *schema.DelegationTokenRecord {
	token, _ := i.tokens.Get(id)
	return token
}

// DelegationTokens goes through the tokens in the order of their ids.
func (i *Image) DelegationTokens() iter.Seq[*schema.DelegationTokenRecord] {
	return values(i.tokens.All())
}

func values[K, V any](entries iter.Seq2[K, V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, value := range entries {
			if !yield(value) {
				return
			}
		}
	}
}
