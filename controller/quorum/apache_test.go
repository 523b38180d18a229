package quorum

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ottla/controller/cluster"
	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/vfs"
)

// TestApacheDirectories: what Apache Kafka 4.4.0 left is opened and continued,
// with dynamic and with static voters, whatever is believed of it.
func TestApacheDirectories(t *testing.T) {
	for _, c := range []struct {
		name, directory string
		kraft           int16
		epoch           protocol.LeaderEpoch // that Kafka led last
		end             protocol.Offset
		level           int16
	}{
		{"dynamic", "fCugWfHCSPyIGcde9JSynA", 1, 3, 62, 33},
		{"static", "7sw2X9ZiPldaPw-bLd7tEQ", 0, 3, 47, 21},
	} {
		for _, trust := range allTrusts {
			disk := vfs.NewMem(seeded(1))
			load(t, disk, filepath.Join("testdata", "apache-4.4.0", c.name))
			r := rigOn(t, disk)
			directory, err := protocol.ParseUUID(c.directory)
			must(t, err)
			r.machine = newCluster(t)
			r.options.Machine, r.options.Trust, r.options.Local = r.machine, trust, raft.ReplicaKey{ID: 1, Directory: directory}
			r.options.Endpoints = nil
			if c.kraft == 0 {
				r.options.StaticVoters = raft.NewVoterSet(raft.Voter{ReplicaKey: raft.ReplicaKey{ID: 1}})
			}
			must(t, r.open())
			if end := r.q.Status().LogEnd; end != c.end {
				t.Fatalf("%s, trust %d: the log ends at %d, want %d", c.name, trust, end, c.end)
			}
			must(t, r.q.Start(r.now))
			status, image := r.q.Status(), r.q.Image()
			if status.Epoch != c.epoch+1 || status.KRaftVersion != c.kraft || status.LogEnd != c.end+1 {
				t.Fatalf("%s, trust %d: %+v", c.name, trust, status)
			}
			if image.Topic("a").PartitionCount() != 3 || image.Config(2, "b")["retention.ms"] != "10000000" || int16(image.MetadataVersion()) != c.level {
				t.Fatalf("%s, trust %d: another Image", c.name, trust)
			}
			previous := int64(image.Broker(1).Epoch)
			r.joinCluster(9, previous)
			if partition := r.q.Image().Topic("a").Partition(1); partition.Leader != 1 || len(partition.ISR) != 1 {
				t.Fatalf("%s, trust %d: %+v", c.name, trust, partition)
			}
			r.createTopic("ours", 2)
			r.tick(2 * time.Hour)
			next := r.again(r.fs.Crash(), log.OtherBoot)
			next.mustStart()
			if !next.q.Image().Equal(r.q.Image()) {
				t.Fatalf("%s, trust %d: another Image after the crash", c.name, trust)
			}
		}
	}
}

// TestApacheFormats: what 4.4.0's StorageTool leaves for a first start.
func TestApacheFormats(t *testing.T) {
	for _, name := range []string{"dynamic", "static"} {
		disk := vfs.NewMem(seeded(1))
		load(t, disk, filepath.Join("testdata", "apache-4.4.0", name))
		for file := range maps.Keys(files(t, disk)) {
			if filepath.Ext(file) != snapshotSuffix && filepath.Base(file) != "meta.properties" {
				must(t, ignoreDirectory(disk.Remove(file), file))
			}
		}
		r := rigOn(t, disk)
		r.machine = newCluster(t)
		r.options.Machine, r.options.Endpoints = r.machine, nil
		r.options.Local.Directory, _ = protocol.ParseUUID("fCugWfHCSPyIGcde9JSynA")
		if name == "static" {
			r.options.StaticVoters = raft.NewVoterSet(raft.Voter{ReplicaKey: raft.ReplicaKey{ID: 1}})
		}
		r.mustStart()
		if r.machine.(*cluster.Controller).Image().MetadataVersion() == 0 || r.q.Image().MetadataVersion() == 0 {
			t.Fatalf("%s: no level", name)
		}
		r.joinCluster(1, -1)
		r.createTopic("a", 1)
		if r.restart().q.Image().Topic("a") == nil {
			t.Fatalf("%s: the topic is gone", name)
		}
	}
}

func ignoreDirectory(err error, name string) error {
	if filepath.Base(name) == "__cluster_metadata-0" || filepath.Base(name) == metaDir {
		return nil
	}
	return err
}

// TestApacheSnapshot: a snapshot that Kafka took of a cluster with everything in
// it, and one of ours of the same, hold the same Image.
func TestApacheSnapshot(t *testing.T) {
	disk := vfs.NewMem(seeded(1))
	must(t, disk.MkdirAll(partitionDir))
	from := filepath.Join("..", "metadata", "testdata", "apache-4.4.0")
	for _, name := range []string{"00000000000000000000-0000000000.checkpoint", "00000000000000000068-0000000001.checkpoint", "00000000000000000000.log"} {
		content, err := os.ReadFile(filepath.Join(from, name))
		must(t, err)
		writeFile(t, disk, partitionDir+"/"+name, content)
	}
	r := rigOn(t, disk)
	r.machine = newCluster(t)
	r.options.Machine = r.machine
	must(t, r.open())
	voter := r.q.core.Voters()[0]
	r.options.Local, r.options.Endpoints = voter.ReplicaKey, voter.Endpoints
	r = r.again(r.fs, log.OtherBoot)
	r.mustStart()
	image := r.q.Image()
	if image.ACLCount() == 0 || image.ClientQuotaCount() == 0 || image.Topic("orders") == nil {
		t.Fatal("too little was read")
	}
	r.tick(2 * time.Hour)
	r.tick(0)
	ids := r.snapshots()
	if len(ids) != 3 {
		t.Fatalf("snapshots %v", ids)
	}
	next := r.again(r.fs, log.SameBoot)
	next.mustStart()
	if !next.q.Image().Equal(r.q.Image()) {
		t.Fatal(fmt.Errorf("the snapshot %v holds another Image", ids[2]))
	}
}
