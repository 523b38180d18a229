package offline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"ottla/protocol"
	"ottla/storage/checkpoint"
	"ottla/storage/logdir"
	"ottla/storage/producer"
	"ottla/storage/vfs"
)

// smallFile is a file that is read whole. dump prints its content and returns what is wrong with it.
type smallFile struct {
	what string
	dump func(d *dumper, data []byte) error
}

// smallFiles by name.
var smallFiles = map[string]smallFile{
	"recovery-point-offset-checkpoint": {"up to which offsets the partitions are durable", dumpOffsets},
	"log-start-offset-checkpoint":      {"at which offsets the partitions begin", dumpOffsets},
	"replication-offset-checkpoint":    {"the high watermarks of the partitions", dumpOffsets},
	"cleaner-offset-checkpoint":        {"up to which offsets the partitions are compacted", dumpOffsets},
	"leader-epoch-checkpoint":          {"at which offsets the leader epochs begin", dumpEpochs},
	"partition.metadata":               {"the topic of the partition", dumpPartitionMetadata},
	logdir.MetaPropertiesFile:          {"whose the directory is", dumpMetaProperties},
	"quorum-state":                     {"the last election that this controller saw", dumpQuorumState},
	".kafka_cleanshutdown":             {"the last stop was clean", dumpCleanShutdown},
}

func (d *dumper) dumpSmall(s smallFile) error {
	data, err := vfs.ReadFile(d.fsys, d.name)
	if err != nil {
		return err
	}
	d.line("# %s", s.what)
	if err := s.dump(d, data); err != nil {
		d.damage(0, "%v", err)
	}
	return nil
}

func dumpOffsets(d *dumper, data []byte) error {
	if len(data) == 0 {
		return nil // as Apache Kafka creates it before there is something to say
	}
	offsets, err := checkpoint.ParseOffsets(data)
	if err != nil {
		return err
	}
	partitions := make([]protocol.TopicPartition, 0, len(offsets))
	for tp := range offsets {
		partitions = append(partitions, tp)
	}
	slices.SortFunc(partitions, func(a, b protocol.TopicPartition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	for _, tp := range partitions {
		d.line("topic=%s partition=%d offset=%d", tp.Topic, tp.Partition, offsets[tp])
	}
	return endsWithLine(data)
}

// endsWithLine finds a file that was cut within its last number.
func endsWithLine(data []byte) error {
	if !bytes.HasSuffix(data, []byte("\n")) {
		return fmt.Errorf("the last line is cut")
	}
	return nil
}

func dumpEpochs(d *dumper, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	epochs, err := checkpoint.ParseEpochs(data)
	for _, e := range epochs {
		d.line("epoch=%d startOffset=%d", e.Epoch, e.Start)
	}
	if err != nil {
		return err
	}
	return endsWithLine(data)
}

func dumpPartitionMetadata(d *dumper, data []byte) error {
	id, err := checkpoint.ParseTopicID(data)
	if err == nil {
		d.line("topicId=%s", id)
	}
	return err
}

func dumpMetaProperties(d *dumper, data []byte) error {
	m, err := logdir.ParseMetaProperties(data)
	if err != nil {
		return err
	}
	d.line("clusterId=%s nodeId=%d directoryId=%s", m.ClusterID, m.NodeID, m.DirectoryID)
	return nil
}

// quorumState is both versions of the file (QuorumStateData.json).
type quorumState struct {
	LeaderID      *protocol.NodeID      `json:"leaderId"`
	LeaderEpoch   *protocol.LeaderEpoch `json:"leaderEpoch"`
	VotedID       *protocol.NodeID      `json:"votedId"`
	VotedDirID    string                `json:"votedDirectoryId"`
	DataVersion   *int16                `json:"data_version"`
	CurrentVoters []struct {
		VoterID protocol.NodeID `json:"voterId"`
	} `json:"currentVoters"`
}

func dumpQuorumState(d *dumper, data []byte) error {
	var s quorumState
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if s.LeaderID == nil || s.LeaderEpoch == nil || s.VotedID == nil || s.DataVersion == nil {
		return fmt.Errorf("leaderId, leaderEpoch, votedId or data_version is missing")
	}
	var voters string
	for _, v := range s.CurrentVoters {
		voters += fmt.Sprintf(" voter=%d", v.VoterID)
	}
	if s.VotedDirID != "" {
		voters += " votedDirectoryId=" + s.VotedDirID
	}
	d.line("leaderEpoch=%d leaderId=%d votedId=%d version=%d%s", *s.LeaderEpoch, *s.LeaderID, *s.VotedID, *s.DataVersion, voters)
	switch {
	case *s.DataVersion < 0 || *s.DataVersion > 1:
		return fmt.Errorf("data_version is %d, and only 0 and 1 are known", *s.DataVersion)
	case *s.LeaderEpoch < 0 || *s.LeaderID < -1 || *s.VotedID < -1:
		return fmt.Errorf("an epoch or id is negative")
	}
	return nil
}

func dumpCleanShutdown(d *dumper, data []byte) error {
	var s struct {
		Version     *int                 `json:"version"`
		BrokerEpoch protocol.BrokerEpoch `json:"brokerEpoch"`
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if s.Version == nil || *s.Version != 0 {
		return fmt.Errorf("its version is not 0")
	}
	d.line("brokerEpoch=%d", s.BrokerEpoch)
	return nil
}

func (d *dumper) dumpProducers(first protocol.Offset) error {
	data, err := vfs.ReadFile(d.fsys, d.name)
	if err != nil {
		return err
	}
	d.line("# the producers as of offset %d", first)
	producers, err := producer.ReadSnapshot(data)
	if err != nil {
		d.damage(0, "%v", err)
		return nil
	}
	for _, p := range producers {
		var batch string
		for _, b := range p.Batches() {
			batch = fmt.Sprintf(" sequences=%d..%d offsets=%d..%d", b.FirstSequence(), b.LastSequence, b.FirstOffset(), b.LastOffset)
		}
		if p.TxnFirstOffset >= 0 {
			batch += fmt.Sprintf(" openTransactionFrom=%d", p.TxnFirstOffset)
		}
		d.line("producer=%d epoch=%d timestamp=%d coordinatorEpoch=%d%s", p.ID, p.Epoch, p.LastTimestampMs, p.CoordinatorEpoch, batch)
	}
	return nil
}
