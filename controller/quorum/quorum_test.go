package quorum

import (
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"ottla/controller/machine"
	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/schema"
	"ottla/storage/log"
	"ottla/storage/vfs"
)

// started is a running rig with a toy.
func started(t *testing.T) *rig {
	r := newRig(t)
	r.options.Machine = r.machine
	return r.mustStart()
}

func TestFreshStartAndRestart(t *testing.T) {
	r := started(t)
	if status := r.q.Status(); status.Leader != 1 || status.Epoch != 1 || status.KRaftVersion != 1 || status.HighWatermark != 3 || status.LogEnd != 3 {
		t.Fatalf("%+v", status)
	}
	if len(r.images) != 1 || r.images[0].MetadataVersion() == 0 {
		t.Fatalf("%d Images, the first with %v", len(r.images), r.images[0].MetadataVersion())
	}
	r.mustSubmit("a", "b")
	if err := r.submit("refuse"); protocol.CodeOf(err) != protocol.InvalidRequest {
		t.Fatalf("refusal: %v", err)
	}
	r.holds()
	for epoch := protocol.LeaderEpoch(2); epoch <= 4; epoch++ {
		r = r.restart()
		r.holds()
		r.mustSubmit(fmt.Sprint("e", epoch))
		if status := r.q.Status(); status.Epoch != epoch {
			t.Fatalf("epoch %d, want %d", status.Epoch, epoch)
		}
	}
	must(t, r.q.Close(r.now))
	if err := r.submit("late"); protocol.CodeOf(err) != protocol.NotController {
		t.Fatalf("after Close: %v", err)
	}
}

// TestFirstBatchIsKafkas: leader change, kraft.version and voters in one control
// batch of a fresh log, and only the leader change later.
func TestFirstBatchIsKafkas(t *testing.T) {
	r := started(t).restart()
	var kinds []string
	for _, batch := range batchesOf(t, r.fs) {
		for one, err := range record.Records(batch, nil, 0) {
			must(t, err)
			kind, err := record.ParseControlKey(one.Key)
			must(t, err)
			kinds = append(kinds, fmt.Sprintf("%d/%d:%v", batch.BaseOffset(), batch.PartitionLeaderEpoch(), kind))
		}
	}
	want := fmt.Sprintf("0/1:%v 0/1:%v 0/1:%v 3/2:%v", record.ControlLeaderChange, record.ControlKRaftVersion, record.ControlKRaftVoters, record.ControlLeaderChange)
	if got := strings.Join(kinds, " "); got != want {
		t.Fatalf("%s, want %s", got, want)
	}
}

func TestStaticVoters(t *testing.T) {
	r := rigOn(t, vfs.NewMem(seeded(1)))
	r.format(0)
	r.options.Machine, r.options.Local = r.machine, raft.ReplicaKey{ID: 1, Directory: protocol.UUID{5}}
	r.mustStart()
	r.mustSubmit("a")
	text, err := vfs.ReadFile(r.fs, path.Join(partitionDir, stateFile))
	must(t, err)
	if want := `{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}`; string(text) != want {
		t.Fatalf("%s, want %s", text, want)
	}
	r.restart().holds()
}

func TestQuorumStateIsKafkas(t *testing.T) {
	r := started(t)
	text, err := vfs.ReadFile(r.fs, path.Join(partitionDir, stateFile))
	must(t, err)
	if want := `{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}`; string(text) != want {
		t.Fatalf("%s, want %s", text, want)
	}
}

func TestNotTheOnlyVoter(t *testing.T) {
	r := newRig(t)
	r.options.Machine, r.options.Local.Directory = r.machine, protocol.UUID{9}
	must(t, r.open())
	before := files(t, r.fs)
	if err := r.q.Start(r.now); err == nil || !strings.Contains(err.Error(), "not the only voter") {
		t.Fatalf("%v", err)
	}
	must(t, sameFiles(before, files(t, r.fs)))
}

func TestChangedEndpointsAreWritten(t *testing.T) {
	r := started(t)
	must(t, r.q.Close(r.now))
	next := r.again(r.fs, log.Clean)
	moved := []raft.Endpoint{{Name: "CONTROLLER", Host: "elsewhere", Port: 19093}}
	next.options.Endpoints = moved
	next.mustStart()
	if got := next.q.Status().Voters[0].Endpoints; len(got) != 1 || got[0] != moved[0] {
		t.Fatalf("%v", got)
	}
	end := next.q.Status().LogEnd
	next = next.restart()
	if got := next.q.Status().Voters[0].Endpoints; got[0] != moved[0] {
		t.Fatalf("after a restart: %v", got)
	}
	if grown := next.q.Status().LogEnd - end; grown != 1 {
		t.Fatalf("%d records of a restart without change", grown)
	}
}

// TestGroupCommit: what waits together shares one batch and one fsync, and
// nobody is answered before it.
func TestGroupCommit(t *testing.T) {
	r := started(t)
	before := len(batchesOf(t, r.fs))
	answered, syncs := 0, 0
	r.fs.OnOperation(func(op vfs.Operation) error {
		if op.Kind == vfs.OpSync && strings.HasSuffix(op.Name, ".log") {
			if syncs++; syncs == 2 && answered != 1 {
				t.Errorf("%d were answered before the fsync", answered)
			}
		}
		return nil
	})
	r.q.Submit(r.now, "first", func(any, error) {
		answered++
		for i := range 5 {
			r.q.Submit(r.now, fmt.Sprint("together", i), func(reply any, err error) {
				must(t, err)
				answered++
				if want := fmt.Sprint(4 + i); reply != want {
					t.Errorf("reply %v, want the offset %s", reply, want)
				}
			})
		}
		r.q.Submit(r.now, "refuse", func(_ any, err error) {
			answered++
			if protocol.CodeOf(err) != protocol.InvalidRequest {
				t.Errorf("%v", err)
			}
		})
		r.q.Submit(r.now, "read", func(reply any, err error) {
			must(t, err)
			answered++
			if want := "first together0 together1 together2 together3 together4"; reply != want {
				t.Errorf("read %v, want %s", reply, want)
			}
			if got := len(r.q.Image().Config(4, "")); got != 6 {
				t.Errorf("a read was answered with %d values in the Image", got)
			}
		})
	})
	r.fs.OnOperation(nil)
	if answered != 8 || syncs != 2 {
		t.Fatalf("%d answers, %d fsyncs", answered, syncs)
	}
	if grown := len(batchesOf(t, r.fs)) - before; grown != 2 {
		t.Fatalf("%d batches", grown)
	}
	r.restart().holds()
}

// TestOneTickWaits: of those that come while the quorum is held up only the first is decided, so that the next one shows for how long it was.
func TestOneTickWaits(t *testing.T) {
	r := started(t)
	m := r.machine.(*toy)
	before, begin := len(m.ticks), r.now
	r.q.Submit(r.now, "a", func(any, error) { // on the turn of whoever drains the queue
		for i := range 5 {
			r.q.Tick(begin.Add(time.Duration(i) * time.Second))
		}
	})
	r.q.Tick(begin.Add(time.Minute))
	if got := m.ticks[before:]; len(got) != 2 || !got[0].Equal(begin) || !got[1].Equal(begin.Add(time.Minute)) {
		t.Errorf("ticks at %v", got)
	}
}

func TestFullQueueRefuses(t *testing.T) {
	r := newRig(t)
	r.options.Machine, r.options.MaxQueuedRequest = r.machine, 3
	r.mustStart()
	refused := 0
	r.q.Submit(r.now, "first", func(any, error) {
		for range 5 {
			r.q.Submit(r.now, "more", func(_ any, err error) {
				if protocol.CodeOf(err) == protocol.RequestTimedOut {
					refused++
				}
			})
		}
	})
	if refused != 2 {
		t.Fatalf("%d of 5 were refused, with room for 3", refused)
	}
}

// TestLargeResultsAreDivided keeps batches below what Kafka reads.
func TestLargeResultsAreDivided(t *testing.T) {
	r := started(t)
	value := strings.Repeat("v", 1000)
	r.q.Submit(r.now, manyValues{5000, value}, func(_ any, err error) { must(t, err) })
	large := 0
	for _, batch := range batchesOf(t, r.fs) {
		if batch.Size() > 2*maxGroupBytes {
			t.Errorf("a batch of %d bytes", batch.Size())
		}
		if batch.Size() > maxGroupBytes/2 {
			large++
		}
	}
	if large < 4 {
		t.Errorf("%d large batches", large)
	}
	if got := len(r.restart().machine.(*toy).values); got != 5000 {
		t.Fatalf("%d values after a restart", got)
	}
}

// TestDutiesDoNotMixWithRequests: a snapshot, or the end, waits for what is
// pending.
func TestDutiesDoNotMixWithRequests(t *testing.T) {
	r := started(t)
	r.q.Submit(r.now, "first", func(any, error) {
		r.q.Submit(r.now, "second", func(_ any, err error) { must(t, err) })
		r.q.Tick(r.now.Add(2 * time.Hour))
		r.q.Submit(r.now, "third", func(_ any, err error) { must(t, err) })
	})
	r.acked = []string{"first", "second", "third"}
	r.holds()
	ids, err := listSnapshots(r.fs, partitionDir)
	must(t, err)
	if len(ids) != 2 || ids[1].End != 5 {
		t.Fatalf("snapshots %v", ids)
	}
	r.restart().holds()
}

func propose(t *testing.T, r *rig, change schema.MetadataRecord) {
	t.Helper()
	r.q.Submit(r.now, change, func(_ any, err error) { must(t, err) })
}

// TestMetadataTransactions: inside one nothing is published and no snapshot is
// taken (KIP-868).
func TestMetadataTransactions(t *testing.T) {
	r := started(t)
	r.mustSubmit("before")
	images := len(r.images)
	propose(t, r, schema.NewBeginTransactionRecord())
	r.mustSubmit("inside", "too")
	if len(r.images) != images || len(r.q.Image().Config(4, "")) != 1 {
		t.Fatal("an Image was published inside a transaction")
	}
	r.tick(2 * time.Hour)
	if due := r.q.NextDeadline(); !due.IsZero() {
		t.Fatalf("a snapshot is due at %v inside a transaction", due)
	}
	if ids, err := listSnapshots(r.fs, partitionDir); err != nil || len(ids) != 1 {
		t.Fatalf("snapshots %v, %v", ids, err)
	}
	propose(t, r, schema.NewEndTransactionRecord())
	r.holds()
	r.tick(0)
	if ids, err := listSnapshots(r.fs, partitionDir); err != nil || len(ids) != 2 {
		t.Fatalf("snapshots %v, %v", ids, err)
	}
	propose(t, r, schema.NewBeginTransactionRecord())
	r.mustSubmit("open")
	next := r.restart()
	if got := len(next.q.Image().Config(4, "")); got != 3 {
		t.Fatalf("%d values published after a restart inside a transaction", got)
	}
	propose(t, next, schema.NewAbortTransactionRecord())
	if got := len(next.q.Image().Config(4, "")); got != 3 {
		t.Fatalf("%d values published after the transaction was aborted", got)
	}
}

// TestUnknownRecordsRefuseTheStart by name, with the directory as it was.
func TestUnknownRecordsRefuseTheStart(t *testing.T) {
	unknown := func() []byte { return []byte{1, 0x7b, 0} } // frame 1, type 123, version 0
	for _, c := range []struct {
		name string
		into func(*rig)
		file string
	}{
		{"log", func(r *rig) { appendBatch(t, r, machine.Record{Value: unknown()}) }, "00000000000000000000.log"},
		{"later version", func(r *rig) {
			appendBatch(t, r, machine.Record{Value: []byte{1, 2, 99}})
		}, "00000000000000000000.log"},
		{"snapshot", func(r *rig) {
			writer := snapshotFile{}
			writer.control(record.SnapshotHeader{})
			writer.data(unknown())
			writer.control(record.SnapshotFooter{})
			writeFile(t, r.fs, path.Join(partitionDir, snapshotID{End: 4}.file()), writer.bytes())
		}, "00000000000000000004-0000000000.checkpoint"},
		{"does not apply", func(r *rig) {
			change := schema.NewRemoveTopicRecord()
			change.TopicID = protocol.UUID{7}
			appendBatch(t, r, machine.Record{Value: schema.EncodeMetadata(change, 0)})
		}, "00000000000000000000.log"},
	} {
		for _, trust := range []log.Trust{log.Clean, log.SameBoot, log.OtherBoot} {
			r := started(t)
			r.mustSubmit("a")
			must(t, r.q.Close(r.now))
			c.into(r)
			next := r.again(r.fs, trust)
			before := files(t, r.fs)
			err := next.open()
			if err == nil || !strings.Contains(err.Error(), c.file) {
				t.Fatalf("%s, trust %d: %v", c.name, trust, err)
			}
			if err := sameFiles(before, files(t, r.fs)); err != nil {
				t.Fatalf("%s, trust %d: %v", c.name, trust, err)
			}
		}
	}
}

// appendBatch adds a batch to the end of a closed log.
func appendBatch(t *testing.T, r *rig, records ...machine.Record) {
	t.Helper()
	batches := batchesOf(t, r.fs)
	last := batches[len(batches)-1]
	options := record.PlainOptions()
	options.BaseOffset, options.PartitionLeaderEpoch = last.NextOffset(), last.PartitionLeaderEpoch()
	builder := record.NewBuilder(options)
	for _, one := range records {
		builder.Append(r.now.UnixMilli(), one.Key, one.Value, nil)
	}
	name := path.Join(partitionDir, "00000000000000000000.log")
	content, err := vfs.ReadFile(r.fs, name)
	must(t, err)
	writeFile(t, r.fs, name, append(content, builder.Build(nil)...))
}

// TestMissingQuorumState is as Apache Kafka 4.4.0 has it: the epoch of the log
// counts, and the start leads a higher one.
func TestMissingQuorumState(t *testing.T) {
	r := started(t).restart().restart()
	r.mustSubmit("a")
	must(t, r.q.Close(r.now))
	must(t, r.fs.Remove(path.Join(partitionDir, stateFile)))
	next := r.again(r.fs, log.Clean).mustStart()
	if got := next.q.Status().Epoch; got != 4 {
		t.Fatalf("epoch %d after 3", got)
	}
	next.holds()
	if !strings.Contains(next.log.String(), "quorum-state is missing") {
		t.Error("nothing was said of it")
	}
}
