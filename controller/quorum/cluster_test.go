package quorum

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/cluster"
	"ottla/controller/config"
	"ottla/controller/metadata"
	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/schema"
	"ottla/storage/log"
	"ottla/storage/vfs"
)

const clusterID = "Q1bSgqqPT4yq1sGFWQ9w7w"

func newCluster(t testing.TB) *cluster.Controller {
	t.Helper()
	broker, _, err := config.Broker(config.Default())
	must(t, err)
	return cluster.New(cluster.Options{
		NodeID: 1, ClusterID: clusterID, Config: broker, SessionTimeout: 9 * time.Second, Random: seeded(7),
		Features: map[string]cluster.Range{metadata.MetadataVersionFeature: {Min: 7, Max: 33}},
	})
}

// clusterRig is a rig with the controller that node runs.
func clusterRig(t *testing.T) *rig {
	r := newRig(t)
	r.machine = newCluster(t)
	r.options.Machine = r.machine
	return r
}

func ask[R kmsg.Response](r *rig, req kmsg.Request) R {
	r.t.Helper()
	var response R
	r.q.Submit(r.now, cluster.Request{Message: req}, func(reply any, err error) {
		must(r.t, err)
		response = reply.(R)
	})
	return response
}

// joinCluster registers and unfences broker 1 as a new process.
func (r *rig) joinCluster(incarnation byte, previousEpoch int64) (epoch int64) {
	r.t.Helper()
	req := kmsg.NewPtrBrokerRegistrationRequest()
	req.Version, req.BrokerID, req.ClusterID, req.IncarnationID, req.PreviousBrokerEpoch = 4, 1, clusterID, [16]byte{incarnation}, previousEpoch
	req.LogDirs = [][16]byte{r.options.Local.Directory}
	for _, feature := range []string{metadata.MetadataVersionFeature, "group.version", "transaction.version", "share.version", "streams.version", metadata.ELRVersionFeature} {
		f := kmsg.NewBrokerRegistrationRequestFeature()
		f.Name, f.MaxSupportedVersion = feature, 2
		if feature == metadata.MetadataVersionFeature {
			f.MinSupportedVersion, f.MaxSupportedVersion = 7, 33
		}
		req.Features = append(req.Features, f)
	}
	registered := ask[*kmsg.BrokerRegistrationResponse](r, req)
	if registered.ErrorCode != 0 {
		r.t.Fatalf("registration: %v", protocol.ErrorCode(registered.ErrorCode))
	}
	beat := kmsg.NewPtrBrokerHeartbeatRequest()
	beat.BrokerID, beat.BrokerEpoch, beat.CurrentMetadataOffset = 1, registered.BrokerEpoch, int64(r.q.Status().LogEnd)
	if answer := ask[*kmsg.BrokerHeartbeatResponse](r, beat); answer.IsFenced || answer.ErrorCode != 0 {
		r.t.Fatalf("heartbeat: %+v", answer)
	}
	return registered.BrokerEpoch
}

func (r *rig) createTopic(name string, partitions int32) kmsg.CreateTopicsResponseTopic {
	r.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 7
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 1
	req.Topics = append(req.Topics, topic)
	return ask[*kmsg.CreateTopicsResponse](r, req).Topics[0]
}

func TestClusterOverTheQuorum(t *testing.T) {
	r := clusterRig(t).mustStart()
	epoch := r.joinCluster(1, -1)
	for i := range 20 {
		if answer := r.createTopic(fmt.Sprint("t", i), 3); answer.ErrorCode != 0 || r.q.Image().Topic(fmt.Sprint("t", i)) == nil {
			t.Fatalf("%+v", answer)
		}
		if i == 10 {
			r.tick(2 * time.Hour) // a snapshot; nobody's silence, as the controller was away
			for range 4 {
				r.tick(3 * time.Second) // the session is over
			}
			if !r.q.Image().Broker(1).Fenced {
				t.Fatal("a silent broker was not fenced")
			}
			epoch = r.joinCluster(byte(10+i), epoch)
		}
	}
	if due, session := r.q.NextDeadline(), r.now.Add(9*time.Second); due.IsZero() || due.After(session) {
		t.Fatalf("deadline %v, after the end of the session %v", due, session)
	}
	for i, trust := range []log.Trust{log.Clean, log.OtherBoot, log.SameBoot} {
		before := r.q.Image()
		disk := r.fs
		switch trust {
		case log.Clean:
			must(t, r.q.Close(r.now))
		case log.OtherBoot:
			disk = r.fs.Crash()
		case log.SameBoot:
			disk = r.fs.Kill()
		}
		r = r.again(disk, trust).mustStart()
		if !r.q.Image().Equal(before) {
			t.Fatalf("trust %d: another Image after the restart", trust)
		}
		if !r.machine.(*cluster.Controller).Image().Equal(before) {
			t.Fatalf("trust %d: the machine has another Image", trust)
		}
		epoch = r.joinCluster(byte(100+i), epoch)
		if partition := r.q.Image().Topic("t3").Partition(2); partition.Leader != 1 {
			t.Fatalf("%+v", partition)
		}
	}
}

// TestDeadController: a metadata transaction that nobody ended is aborted by the
// next active controller, over a real log.
func TestDeadController(t *testing.T) {
	r := started(t)
	propose(t, r, schema.NewBeginTransactionRecord())
	r.mustSubmit("inside")
	disk := r.fs.Crash()
	next := r.again(disk, log.OtherBoot)
	next.machine = newCluster(t)
	next.options.Machine = next.machine
	next.mustStart()
	if got := next.q.Image().Config(4, ""); len(got) != 0 {
		t.Fatalf("%v of an aborted transaction", got)
	}
	next.joinCluster(1, -1)
	next.createTopic("a", 1)
	if next.restart().q.Image().Topic("a") == nil {
		t.Fatal("the topic is gone")
	}
}

// TestRecordVersionsFollowTheLevel: at 3.9 nothing is written that 3.9 does not
// read.
func TestRecordVersionsFollowTheLevel(t *testing.T) {
	r := clusterRig(t)
	writer := snapshotFile{}
	writer.control(record.SnapshotHeader{})
	writer.control(record.KRaftVersion{KRaftVersion: 1})
	writer.control(votersToRecord(raft.NewVoterSet(raft.Voter{ReplicaKey: localKey, Endpoints: endpoints, MaxKRaftVersion: 1})))
	level := schema.NewFeatureLevelRecord()
	level.Name, level.FeatureLevel = metadata.MetadataVersionFeature, 21
	writer.data(schema.EncodeMetadata(level, 0))
	writer.control(record.SnapshotFooter{})
	writeFile(t, r.fs, partitionDir+"/"+snapshotID{}.file(), writer.bytes())
	r.mustStart()
	r.joinCluster(1, -1)
	r.createTopic("a", 2)
	versions := map[string]int16{}
	for _, batch := range batchesOf(t, r.fs) {
		if batch.IsControl() {
			continue
		}
		for one, err := range record.Records(batch, nil, 0) {
			must(t, err)
			decoded, version, err := schema.DecodeMetadata(one.Value)
			must(t, err)
			versions[decoded.RecordName()] = max(versions[decoded.RecordName()], version)
		}
	}
	for name, want := range map[string]int16{"RegisterBrokerRecord": 3, "PartitionRecord": 1, "BrokerRegistrationChangeRecord": 0} {
		if got, ok := versions[name]; !ok || got != want {
			t.Errorf("%s in version %d (%v), want %d", name, got, ok, want)
		}
	}
	r.tick(2 * time.Hour)
	if next := r.restart(); next.q.Image().Topic("a") == nil || next.q.Image().MetadataVersion() != 21 {
		t.Error("a snapshot at 3.9 lost something")
	}
}

// TestBootstrapOfOlderFormats: the first records lie beside the log, with static
// voters, and with the voters in a snapshot of their own as in 3.9.
func TestBootstrapOfOlderFormats(t *testing.T) {
	level := schema.NewFeatureLevelRecord()
	level.Name, level.FeatureLevel = metadata.MetadataVersionFeature, 21
	bootstrap := snapshotFile{}
	bootstrap.data(schema.EncodeMetadata(level, 0))
	voters := snapshotFile{}
	voters.control(record.SnapshotHeader{})
	voters.control(record.KRaftVersion{KRaftVersion: 1})
	voters.control(votersToRecord(raft.NewVoterSet(raft.Voter{ReplicaKey: localKey, Endpoints: endpoints, MaxKRaftVersion: 1})))
	voters.control(record.SnapshotFooter{})
	dynamic := voters.bytes()
	plain := bootstrap.bytes()
	for _, c := range []struct {
		name     string
		snapshot []byte
		kraft    int16
	}{{"static", nil, 0}, {"dynamic", dynamic, 1}} {
		r := rigOn(t, vfs.NewMem(seeded(1)))
		must(t, r.fs.MkdirAll(metaDir))
		writeFile(t, r.fs, metaDir+"/"+bootstrapFile, plain)
		if c.snapshot != nil {
			must(t, r.fs.MkdirAll(partitionDir))
			writeFile(t, r.fs, partitionDir+"/"+snapshotID{}.file(), c.snapshot)
		} else {
			r.options.StaticVoters = raft.NewVoterSet(raft.Voter{ReplicaKey: raft.ReplicaKey{ID: 1}, Endpoints: endpoints})
		}
		r.machine = newCluster(t)
		r.options.Machine = r.machine
		r.mustStart()
		for range 2 {
			if got := r.q.Image().MetadataVersion(); got != 21 {
				t.Fatalf("%s: level %v", c.name, got)
			}
			if got := r.q.Status().KRaftVersion; got != c.kraft {
				t.Fatalf("%s: kraft.version %d", c.name, got)
			}
			r = r.restart()
		}
	}
}
