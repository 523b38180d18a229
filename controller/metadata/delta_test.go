package metadata

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ottla/protocol"
	"ottla/protocol/schema"
)

var (
	ordersID   = protocol.TopicID{1}
	paymentsID = protocol.TopicID{2}
)

func text(s string) *string { return &s }

func topicRecord(name string, id protocol.TopicID) *schema.TopicRecord {
	r := schema.NewTopicRecord()
	r.Name, r.TopicID = name, id
	return r
}

func partitionRecord(id protocol.TopicID, n int32, replicas ...protocol.NodeID) *schema.PartitionRecord {
	r := schema.NewPartitionRecord()
	r.TopicID, r.PartitionID = id, n
	r.Replicas, r.ISR, r.Leader = replicas, replicas, replicas[0]
	r.LeaderEpoch, r.PartitionEpoch = 0, 0
	return r
}

func partitionChange(id protocol.TopicID, n int32, change func(*schema.PartitionChangeRecord)) *schema.PartitionChangeRecord {
	r := schema.NewPartitionChangeRecord()
	r.TopicID, r.PartitionID = id, n
	change(r)
	return r
}

func brokerRecord(id protocol.NodeID, epoch protocol.BrokerEpoch) *schema.RegisterBrokerRecord {
	r := schema.NewRegisterBrokerRecord()
	r.BrokerID, r.BrokerEpoch = id, epoch
	return r
}

func configRecord(kind int8, name, key string, value *string) *schema.ConfigRecord {
	r := schema.NewConfigRecord()
	r.ResourceType, r.ResourceName, r.Name, r.Value = kind, name, key, value
	return r
}

func featureRecord(name string, level int16) *schema.FeatureLevelRecord {
	r := schema.NewFeatureLevelRecord()
	r.Name, r.FeatureLevel = name, level
	return r
}

// imageOf replays records from offset 0 on.
func imageOf(t *testing.T, base *Image, records ...schema.MetadataRecord) *Image {
	t.Helper()
	delta := NewDelta(base)
	for i, r := range records {
		if err := delta.Replay(protocol.Offset(i), 1, r); err != nil {
			t.Fatal(err)
		}
	}
	return delta.Build(Provenance{protocol.Offset(len(records) - 1), 1, 1000})
}

func TestPartitionChange(t *testing.T) {
	base := imageOf(t, Empty(), topicRecord("orders", ordersID), partitionRecord(ordersID, 0, 1, 2, 3))
	start := base.Topic("orders").Partition(0)
	if !slices.Equal(start.Directories, []protocol.DirectoryID{protocol.DirectoryMigrating, protocol.DirectoryMigrating, protocol.DirectoryMigrating}) {
		t.Errorf("a record without directories gives %v", start.Directories)
	}
	for name, c := range map[string]struct {
		change func(*schema.PartitionChangeRecord)
		want   func(*Partition)
	}{
		"nothing":         {func(*schema.PartitionChangeRecord) {}, func(*Partition) {}},
		"isr":             {func(r *schema.PartitionChangeRecord) { r.ISR = []protocol.NodeID{1} }, func(p *Partition) { p.ISR = []protocol.NodeID{1} }},
		"the same leader": {func(r *schema.PartitionChangeRecord) { r.Leader = 1 }, func(p *Partition) { p.LeaderEpoch++ }},
		"no leader":       {func(r *schema.PartitionChangeRecord) { r.Leader = -1 }, func(p *Partition) { p.Leader = -1; p.LeaderEpoch++ }},
		"an unclean leader": {
			func(r *schema.PartitionChangeRecord) { r.Leader, r.LeaderRecoveryState = 2, 1 },
			func(p *Partition) { p.Leader, p.LeaderRecoveryState = 2, 1; p.LeaderEpoch++ },
		},
		"an empty isr": {func(r *schema.PartitionChangeRecord) { r.ISR = []protocol.NodeID{} }, func(p *Partition) { p.ISR = nil }},
		"a reassignment": {
			func(r *schema.PartitionChangeRecord) {
				r.Replicas, r.AddingReplicas = []protocol.NodeID{1, 2, 3, 4}, []protocol.NodeID{4}
				r.Directories = []protocol.DirectoryID{{1}, {2}, {3}, {4}}
			},
			func(p *Partition) {
				p.Replicas, p.AddingReplicas = []protocol.NodeID{1, 2, 3, 4}, []protocol.NodeID{4}
				p.Directories = []protocol.DirectoryID{{1}, {2}, {3}, {4}}
			},
		},
		"elr": {
			func(r *schema.PartitionChangeRecord) {
				r.EligibleLeaderReplicas, r.LastKnownELR = []protocol.NodeID{2}, []protocol.NodeID{3}
			},
			func(p *Partition) { p.ELR, p.LastKnownELR = []protocol.NodeID{2}, []protocol.NodeID{3} },
		},
	} {
		image := imageOf(t, base, partitionChange(ordersID, 0, c.change))
		want := *start
		want.PartitionEpoch++
		c.want(&want)
		if got := image.Topic("orders").Partition(0); !got.equal(&want) {
			t.Errorf("%s: the partition is %+v and not %+v", name, got, want)
		}
		if base.Topic("orders").Partition(0) != start || start.PartitionEpoch != 0 {
			t.Errorf("%s: the old image changed", name)
		}
	}
}

// TestRefused asks for errors that name the record and leave the Delta alone.
func TestRefused(t *testing.T) {
	fence := schema.NewFenceBrokerRecord()
	fence.ID, fence.Epoch = 1, 9
	strange := schema.NewBrokerRegistrationChangeRecord()
	strange.BrokerID, strange.BrokerEpoch, strange.Fenced = 1, 7, 3
	tagged := partitionChange(ordersID, 0, func(r *schema.PartitionChangeRecord) { r.UnknownTags = []schema.Tag{{Number: 20}} })
	remove := schema.NewRemoveAccessControlEntryRecord()
	clearELR := schema.NewClearElrRecord()
	clearELR.TopicName = "nothing"
	base := imageOf(t, Empty(), topicRecord("orders", ordersID), partitionRecord(ordersID, 0, 1), brokerRecord(1, 7))
	for _, c := range []struct {
		record schema.MetadataRecord
		text   string
	}{
		{topicRecord("orders", paymentsID), `TOPIC_RECORD, cannot be applied: the topic "orders" exists`},
		{topicRecord("payments", ordersID), `is that of the topic "orders"`},
		{partitionRecord(paymentsID, 0, 1), "PARTITION_RECORD, cannot be applied: there is no topic with the id"},
		{partitionChange(ordersID, 1, func(*schema.PartitionChangeRecord) {}), `"orders" has no partition 1`},
		{partitionChange(ordersID, 0, func(r *schema.PartitionChangeRecord) { r.LeaderRecoveryState = 5 }), "recovery state 5"},
		{tagged, "unknown tagged field 20"},
		{fence, "registered with the epoch 7 and not 9"},
		{strange, "fenced has the unknown value 3"},
		{remove, "no access control entry"},
		{clearELR, `no topic "nothing"`},
		{featureRecord(MetadataVersionFeature, 34), "metadata.version 34 is not known"},
		{schema.NewEndTransactionRecord(), "no metadata transaction is open"},
	} {
		delta := NewDelta(base)
		err := delta.Replay(77, 1, c.record)
		if err == nil || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), "offset 77") {
			t.Errorf("%s gives %v, not %q", schema.TypeName(c.record), err, c.text)
		}
	}
}

func TestTopicsComeAndGo(t *testing.T) {
	first := imageOf(t, Empty(), topicRecord("orders", ordersID), partitionRecord(ordersID, 0, 1), partitionRecord(ordersID, 1, 1),
		configRecord(TopicConfig, "orders", "retention.ms", text("5")), configRecord(TopicConfig, "orders", "a", text("b")))
	if first.PartitionCount() != 2 || first.TopicCount() != 1 {
		t.Errorf("%d topics, %d partitions", first.TopicCount(), first.PartitionCount())
	}
	gone := schema.NewRemoveTopicRecord()
	gone.TopicID = ordersID
	delta := NewDelta(first)
	for i, r := range []schema.MetadataRecord{gone, topicRecord("orders", paymentsID), partitionRecord(paymentsID, 0, 2)} {
		if err := delta.Replay(protocol.Offset(i), 1, r); err != nil {
			t.Fatal(err)
		}
	}
	second := delta.Build(Provenance{})
	if second.PartitionCount() != 1 || second.Config(TopicConfig, "orders") != nil || second.TopicByID(ordersID) != nil {
		t.Error("a topic made anew has something of the old one")
	}
	changes := delta.Changes()
	if len(changes.DeletedTopics) != 1 || changes.DeletedTopics[0].ID != ordersID ||
		len(changes.Topics) != 1 || changes.Topics[0].Old != nil || !slices.Equal(changes.Topics[0].Partitions, []int32{0}) ||
		!slices.Equal(changes.Configs, []ConfigResource{{TopicConfig, "orders"}}) {
		t.Errorf("the changes are %+v", changes)
	}
	if first.Topic("orders").ID != ordersID || len(first.Config(TopicConfig, "orders")) != 2 {
		t.Error("the old image changed")
	}
}

func TestConfigsAreMergedByKey(t *testing.T) {
	image := imageOf(t, Empty(),
		configRecord(BrokerConfig, "", "b", text("1")), configRecord(BrokerConfig, "", "a", text("2")),
		configRecord(BrokerConfig, "", "b", text("3")), configRecord(BrokerConfig, "", "c", text("")),
		configRecord(BrokerConfig, "", "a", nil), configRecord(BrokerConfig, "1", "never", nil))
	got := image.Config(BrokerConfig, "")
	if len(got) != 2 || got["b"] != "3" || got["c"] != "" || image.Config(BrokerConfig, "1") != nil {
		t.Errorf("the configs are %v", got)
	}
}

func TestBrokerChanges(t *testing.T) {
	base := imageOf(t, Empty(), brokerRecord(1, 7))
	change := schema.NewBrokerRegistrationChangeRecord()
	change.BrokerID, change.BrokerEpoch, change.Fenced, change.InControlledShutdown = 1, 7, -1, 1
	change.LogDirs, change.CordonedLogDirs = []protocol.DirectoryID{{9}, {8}}, []protocol.DirectoryID{{9}}
	image := imageOf(t, base, change)
	got := image.Broker(1)
	if got.Fenced || !got.InControlledShutdown || len(got.LogDirs) != 2 || len(got.CordonedLogDirs) != 1 {
		t.Errorf("the broker is %+v", got)
	}
	none := schema.NewBrokerRegistrationChangeRecord()
	none.BrokerID, none.BrokerEpoch = 1, 7
	again := imageOf(t, image, none)
	if again.Broker(1) != got {
		t.Error("a change of nothing makes a new broker")
	}
	if !base.Broker(1).Fenced {
		t.Error("the old image changed")
	}
}

func TestClearELR(t *testing.T) {
	with := func(id protocol.TopicID) schema.MetadataRecord {
		return partitionChange(id, 0, func(r *schema.PartitionChangeRecord) { r.EligibleLeaderReplicas = []protocol.NodeID{2} })
	}
	base := imageOf(t, Empty(), topicRecord("orders", ordersID), partitionRecord(ordersID, 0, 1, 2), partitionRecord(ordersID, 1, 1, 2),
		topicRecord("payments", paymentsID), partitionRecord(paymentsID, 0, 1, 2), with(ordersID), with(paymentsID))
	one := schema.NewClearElrRecord()
	one.TopicName = "orders"
	image := imageOf(t, base, one)
	if p := image.Topic("orders").Partition(0); p.ELR != nil || p.PartitionEpoch != 2 || p.LeaderEpoch != 0 {
		t.Errorf("the partition is %+v", p)
	}
	if image.Topic("orders").Partition(1) != base.Topic("orders").Partition(1) || len(image.Topic("payments").Partition(0).ELR) != 1 {
		t.Error("more than the topic's ELRs changed")
	}
	if all := imageOf(t, base, schema.NewClearElrRecord()); all.Topic("payments").Partition(0).ELR != nil {
		t.Error("an ELR is left after all were cleared")
	}
}

// TestUnknownTagsSurviveSnapshots puts an unknown tag on every record that is
// kept, and on what is within, and looks for it in the snapshot.
func TestUnknownTagsSurviveSnapshots(t *testing.T) {
	tags := []schema.Tag{{Number: 40, Value: []byte("kept")}}
	topic, partition, broker := topicRecord("orders", ordersID), partitionRecord(ordersID, 0, 1), brokerRecord(1, 7)
	broker.EndPoints = []schema.BrokerEndpoint{{Name: "A", UnknownTags: tags}}
	broker.Features = []schema.BrokerFeature{{Name: "f", UnknownTags: tags}}
	controller := schema.NewRegisterControllerRecord()
	controller.EndPoints = []schema.ControllerEndpoint{{Name: "A", UnknownTags: tags}}
	controller.Features = []schema.ControllerFeature{{Name: "f", UnknownTags: tags}}
	config, feature := configRecord(TopicConfig, "orders", "a", text("b")), featureRecord("future.version", 3)
	version := featureRecord(MetadataVersionFeature, int16(MaxMetadataVersion))
	acl, quota := schema.NewAccessControlEntryRecord(), schema.NewClientQuotaRecord()
	quota.Entity = []schema.ClientQuotaEntity{{EntityType: "user", UnknownTags: tags}}
	scram, token := schema.NewUserScramCredentialRecord(), schema.NewDelegationTokenRecord()
	topic.UnknownTags, partition.UnknownTags, broker.UnknownTags, controller.UnknownTags = tags, tags, tags, tags
	config.UnknownTags, feature.UnknownTags, version.UnknownTags, acl.UnknownTags = tags, tags, tags, tags
	quota.UnknownTags, scram.UnknownTags, token.UnknownTags = tags, tags, tags
	records := []schema.MetadataRecord{version, feature, broker, controller, topic, partition, config, quota, acl, scram, token}
	image := imageOf(t, Empty(), records...)
	var again []schema.MetadataRecord
	image.Records(image.MetadataVersion(), func(r schema.MetadataRecord, v int16) {
		decoded, _, err := schema.DecodeMetadata(schema.EncodeMetadata(r, v))
		if err != nil {
			t.Fatal(err)
		}
		again = append(again, decoded)
		if got := strings.Count(string(schema.EncodeMetadata(r, v)), "kept"); got == 0 {
			t.Errorf("%s has lost its unknown tags", schema.TypeName(r))
		}
	})
	if len(again) != len(records) {
		t.Fatalf("%d records became %d", len(records), len(again))
	}
	if back := imageOf(t, Empty(), again...); !back.Equal(image) {
		t.Errorf("the image comes back with the changes %+v", Diff(image, back))
	}
}

// TestSnapshotAtOlderLevels writes everything a new level has at every older
// one: no record may hold what its version has no place for.
func TestSnapshotAtOlderLevels(t *testing.T) {
	broker := brokerRecord(1, 7)
	broker.IsMigratingZkBroker, broker.InControlledShutdown = true, true
	broker.LogDirs, broker.CordonedLogDirs = []protocol.DirectoryID{{1}}, []protocol.DirectoryID{{1}}
	partition := partitionRecord(ordersID, 0, 1, 2)
	partition.Directories = []protocol.DirectoryID{{1}, {2}}
	partition.EligibleLeaderReplicas, partition.LastKnownELR = []protocol.NodeID{1}, []protocol.NodeID{2}
	image := imageOf(t, Empty(), broker, topicRecord("orders", ordersID), partition, schema.NewRegisterControllerRecord(),
		schema.NewUserScramCredentialRecord(), schema.NewDelegationTokenRecord())
	for version := OldestMetadataVersion; version <= MaxMetadataVersion; version++ {
		delta := NewDelta(Empty())
		image.Records(version, func(r schema.MetadataRecord, v int16) {
			decoded, got, err := schema.DecodeMetadata(schema.EncodeMetadata(r, v))
			if err == nil && got == v {
				err = delta.Replay(0, 0, decoded)
			}
			if err != nil {
				t.Errorf("%v: %v", version, err)
			}
		})
		back := delta.Build(Provenance{})
		if back.MetadataVersion() != version || back.Broker(1) == nil || back.PartitionCount() != 1 {
			t.Errorf("%v: something is missing", version)
		}
	}
}

func TestKRaftVersionIsNotAFeatureOfTheImage(t *testing.T) {
	image := imageOf(t, Empty(), featureRecord(KRaftVersionFeature, 1), featureRecord(GroupVersionFeature, 1), featureRecord(GroupVersionFeature, 0))
	if len(image.Features()) != 0 {
		t.Errorf("the features are %v", image.Features())
	}
}

func TestQuotaKeysDiffer(t *testing.T) {
	quota := func(key string, parts ...*string) *schema.ClientQuotaRecord {
		r := schema.NewClientQuotaRecord()
		r.Key = key
		for i := 0; i+1 < len(parts); i += 2 {
			r.Entity = append(r.Entity, schema.ClientQuotaEntity{EntityType: *parts[i], EntityName: parts[i+1]})
		}
		return r
	}
	user, client := text("user"), text("client-id")
	seen := map[string]bool{}
	for _, r := range []*schema.ClientQuotaRecord{
		quota("k", user, text("a"), client, text("b")), quota("k", user, text("a")), quota("k", user, nil), quota("k", user, text("")),
		quota("l", user, nil), quota("k", user, text("a\x00")), quota("k", user, text("a\x00\x00\x00k")),
	} {
		seen[quotaKey(r)] = true
	}
	if len(seen) != 7 {
		t.Errorf("7 quotas have %d keys", len(seen))
	}
	if quotaKey(quota("k", user, text("a"), client, text("b"))) != quotaKey(quota("k", client, text("b"), user, text("a"))) {
		t.Error("the order of an entity's parts matters")
	}
}

func TestUnknownRecordStopsTheLoader(t *testing.T) {
	_, _, err := NewLoader().Apply(Batch{BaseOffset: 5, LastOffset: 5, Values: [][]byte{{1, 99, 2}}})
	var unknown *schema.UnknownRecordError
	if !errors.As(err, &unknown) || unknown.Key != 99 || unknown.Version != 2 || !strings.Contains(err.Error(), "offset 5") {
		t.Errorf("an unknown record gives %v", err)
	}
}

// TestBuildFreezes goes on with a Delta after Build, and inside a transaction
// that is aborted: what was built before must stay.
func TestBuildFreezes(t *testing.T) {
	delta := NewDelta(Empty())
	replay := func(records ...schema.MetadataRecord) {
		for _, r := range records {
			if err := delta.Replay(0, 1, r); err != nil {
				t.Fatal(err)
			}
		}
	}
	replay(topicRecord("orders", ordersID), partitionRecord(ordersID, 0, 1), brokerRecord(1, 7))
	first := delta.Build(Provenance{})
	shrink := partitionChange(ordersID, 0, func(r *schema.PartitionChangeRecord) { r.Leader = -1 })
	replay(shrink, partitionRecord(ordersID, 1, 1), brokerRecord(2, 8))
	second := delta.Build(Provenance{})
	replay(schema.NewBeginTransactionRecord(), shrink, partitionRecord(ordersID, 2, 1), topicRecord("payments", paymentsID), brokerRecord(3, 9),
		schema.NewAbortTransactionRecord())
	third := delta.Build(Provenance{})
	if first.PartitionCount() != 1 || first.Topic("orders").Partition(0).Leader != 1 || first.BrokerCount() != 1 {
		t.Error("the first image changed")
	}
	if second.PartitionCount() != 2 || second.Topic("orders").Partition(0).LeaderEpoch != 1 || second.BrokerCount() != 2 {
		t.Error("the second image changed")
	}
	if !third.Equal(second) || second.Equal(first) {
		t.Error("an aborted transaction left something behind")
	}
}
