package quorum

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/vfs"
)

// watcher is a quorum that observes, on a disk of its own, and the network to a
// leader, which is another rig.
type watcher struct {
	*rig
	leader *rig
	// committed is what the leader is made to say; NoOffset: what is so.
	committed protocol.Offset
	// spoil, if set, changes the leader's answers.
	spoil   func(*kmsg.FetchResponse)
	sent    int
	waiting []func()
}

var observerKey = raft.ReplicaKey{ID: 7, Directory: protocol.UUID{0xd7}}

// watch makes an observer of a leader on an empty disk.
func watch(t testing.TB, leader *rig) *watcher {
	w := &watcher{rig: rigOn(t, vfs.NewMem(seeded(7))), leader: leader, committed: protocol.NoOffset}
	must(t, w.fs.MkdirAll(metaDir))
	w.observe()
	return w
}

func (w *watcher) observe() {
	w.machine, w.options.Machine, w.options.Local, w.options.Endpoints = nil, nil, observerKey, nil
	w.options.Observe = &Observe{
		ClusterID: "cluster", FetchBytes: 4000, SnapshotBytes: 500, Send: w.send,
		FollowSettings: raft.FollowSettings{
			Bootstrap:    []raft.Address{{ID: -2, Host: "localhost", Port: 9093}},
			FetchTimeout: 2 * time.Second, RetryBackoff: 20 * time.Millisecond, Random: seeded(3),
		},
	}
}

// send answers later, as a network does.
func (w *watcher) send(_ raft.Address, req kmsg.Request, done func(kmsg.Response, error)) {
	w.sent++
	w.waiting = append(w.waiting, func() {
		switch req := req.(type) {
		case *kmsg.FetchRequest:
			resp := w.leader.serveFetch(w.t, req, w.committed)
			if w.spoil != nil {
				w.spoil(resp)
			}
			done(resp, nil)
		case *kmsg.FetchSnapshotRequest:
			done(w.leader.serveSnapshot(w.t, req), nil)
		}
	})
}

// run lets requests and answers go back and forth until done is true.
func (w *watcher) run(what string, done func() bool) {
	w.t.Helper()
	for range 3000 {
		if done() {
			return
		}
		w.tick(5 * time.Millisecond)
		waiting := w.waiting
		w.waiting = nil
		for _, answer := range waiting {
			answer()
		}
	}
	w.t.Fatalf("waited in vain until %s; the log ends at %d, %s", what, w.q.log.View().LogEndOffset, w.log.String())
}

func (w *watcher) follows() {
	w.t.Helper()
	w.run("the observer has what the leader has", func() bool {
		return w.q.CaughtUp() && w.q.core.HighWatermark() == w.leader.q.core.HighWatermark()
	})
	ours, theirs := w.q.Image(), w.leader.q.Image()
	if ours.Provenance() != theirs.Provenance() {
		w.t.Fatalf("the Image is of %v, the leader's of %v", ours.Provenance(), theirs.Provenance())
	}
	if got, want := fmt.Sprint(ours.Config(4, "")), fmt.Sprint(theirs.Config(4, "")); got != want {
		w.t.Fatalf("the Image holds %s, the leader's %s", got, want)
	}
}

// reborn is the observer after its process died, on the disk as it is.
func (w *watcher) reborn(disk *vfs.Mem, trust log.Trust) *watcher {
	next := &watcher{rig: w.again(disk, trust), leader: w.leader, committed: protocol.NoOffset}
	next.observe()
	return next
}

// serveFetch is a leader's answer out of its own log.
func (r *rig) serveFetch(t testing.TB, req *kmsg.FetchRequest, committed protocol.Offset) *kmsg.FetchResponse {
	asked := req.Topics[0].Partitions[0]
	resp, topic, p := kmsg.NewPtrFetchResponse(), kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
	epoch := int32(r.q.core.Epoch())
	p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = int32(localKey.ID), epoch
	resp.Brokers = []kmsg.FetchResponseBroker{{NodeID: int32(localKey.ID), Host: "localhost", Port: 9093}}
	if committed == protocol.NoOffset {
		committed = r.q.core.HighWatermark()
	}
	p.HighWatermark = int64(committed)
	view := r.q.log.View()
	offset, last := protocol.Offset(asked.FetchOffset), protocol.LeaderEpoch(asked.LastFetchedEpoch)
	found, end := r.q.log.EpochEnd(last)
	ids, err := listSnapshots(r.fs, r.q.dir)
	must(t, err)
	switch {
	case asked.CurrentLeaderEpoch < epoch:
		p.ErrorCode = int16(protocol.FencedLeaderEpoch)
	case offset < view.LogStartOffset:
		p.SnapshotID.EndOffset, p.SnapshotID.Epoch = int64(ids[len(ids)-1].End), int32(ids[len(ids)-1].Epoch)
	case offset > 0 && (found != last || end < offset):
		p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = int32(found), int64(end)
	case offset < view.LogEndOffset:
		read, err := r.q.log.Read(offset, int(req.MaxBytes), view.LogEndOffset, true)
		must(t, err)
		p.RecordBatches, err = read.Region.ReadAll()
		must(t, err)
		read.Region.Release()
	}
	topic.Partitions = append(topic.Partitions, p)
	resp.Topics = append(resp.Topics, topic)
	return resp
}

// serveSnapshot is a leader's chunk of a snapshot.
func (r *rig) serveSnapshot(t testing.TB, req *kmsg.FetchSnapshotRequest) *kmsg.FetchSnapshotResponse {
	asked := req.Topics[0].Partitions[0]
	resp, topic, p := kmsg.NewPtrFetchSnapshotResponse(), kmsg.NewFetchSnapshotResponseTopic(), kmsg.NewFetchSnapshotResponseTopicPartition()
	p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = int32(localKey.ID), int32(r.q.core.Epoch())
	id := snapshotID{End: protocol.Offset(asked.SnapshotID.EndOffset), Epoch: protocol.LeaderEpoch(asked.SnapshotID.Epoch)}
	content, err := vfs.ReadFile(r.fs, path.Join(r.q.dir, id.file()))
	must(t, err)
	p.SnapshotID.EndOffset, p.SnapshotID.Epoch = asked.SnapshotID.EndOffset, asked.SnapshotID.Epoch
	p.Size, p.Position = int64(len(content)), asked.Position
	p.Bytes = content[asked.Position:min(asked.Position+int64(req.MaxBytes), int64(len(content)))]
	topic.Partitions = append(topic.Partitions, p)
	resp.Topics = append(resp.Topics, topic)
	return resp
}

func leading(t testing.TB) *rig {
	r := newRig(t)
	r.options.Machine = r.machine
	return r.mustStart()
}

func numbered(from, count int) (values []string) {
	for i := range count {
		values = append(values, fmt.Sprintf("v%d", from+i))
	}
	return values
}

func TestObserverCatchesUpAndFollows(t *testing.T) {
	leader := leading(t)
	leader.mustSubmit(numbered(0, 200)...)
	w := watch(t, leader)
	must(t, w.start())
	w.follows()
	if len(w.images) != 1 {
		t.Errorf("%d Images were published on the way, want the last alone", len(w.images))
	}
	leader.mustSubmit(numbered(200, 20)...)
	w.follows()
	ours, theirs := batchesOf(t, w.fs), batchesOf(t, leader.fs)
	if len(ours) != len(theirs) {
		t.Fatalf("%d batches, the leader has %d", len(ours), len(theirs))
	}
	for i := range ours {
		if string(ours[i]) != string(theirs[i]) {
			t.Fatalf("batch %d is not the leader's", i)
		}
	}
	state, known, err := readState(w.fs, w.q.dir)
	if err != nil || !known || state.Leader != localKey.ID || state.Epoch != leader.q.core.Epoch() {
		t.Errorf("quorum-state says %+v (%t), %v", state, known, err)
	}
	if votes := w.q.core.Voters().Has(w.q.options.Local); votes || w.q.Status().KRaftVersion != 1 {
		t.Errorf("votes %t, kraft.version %d", votes, w.q.Status().KRaftVersion)
	}
	must(t, w.q.Close(w.now))
}

// TestObserverWaitsForTheLeader: an Image of what happens to lie on the disk is not
// what is committed.
func TestObserverWaitsForTheLeader(t *testing.T) {
	leader := leading(t)
	leader.mustSubmit(numbered(0, 50)...)
	w := watch(t, leader)
	must(t, w.start())
	w.follows()
	must(t, w.q.Close(w.now))
	leader.mustSubmit(numbered(50, 50)...)
	next := w.reborn(w.fs, log.OtherBoot)
	must(t, next.start())
	if next.q.CaughtUp() {
		t.Fatal("an Image was published before the leader was heard")
	}
	next.follows()
}

// TestObserverMendsItsEnd: what a crash tore is fetched again.
func TestObserverMendsItsEnd(t *testing.T) {
	for _, trust := range []log.Trust{log.OtherBoot, log.SameBoot} {
		leader := leading(t)
		leader.mustSubmit(numbered(0, 50)...)
		w := watch(t, leader)
		must(t, w.start())
		w.follows()
		must(t, w.q.Close(w.now))
		name := path.Join(partitionDir, "00000000000000000000.log")
		content, err := vfs.ReadFile(w.fs, name)
		must(t, err)
		content[len(content)*2/3] ^= 0x40
		writeFile(t, w.fs, name, content)
		next := w.reborn(w.fs, trust)
		must(t, next.start())
		next.follows()
		if !strings.Contains(next.log.String(), "was never made durable and is cut") {
			t.Errorf("nothing was said of the cut: %s", next.log.String())
		}
		must(t, next.q.Close(next.now))
	}
}

// TestObserverAsksAgain: batches that are damaged, that do not continue the log or that the leader cannot have written yet are
// not appended, nor what stands behind them; the good ones before them are, and the rest is fetched again.
func TestObserverAsksAgain(t *testing.T) {
	for name, spoil := range map[string]func(record.Batch){
		"damaged":         func(b record.Batch) { b[len(b)-1] ^= 1 },
		"another offset":  func(b record.Batch) { b.SetBaseOffset(b.BaseOffset() + 5) },
		"of later epochs": func(b record.Batch) { b.SetPartitionLeaderEpoch(1000) },
		"no offsets": func(b record.Batch) {
			binary.BigEndian.PutUint32(b[23:], 0xfffffff0) // lastOffsetDelta
			binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			leader := leading(t)
			for from := range 10 {
				leader.mustSubmit(numbered(20*from, 20)...)
			}
			w := watch(t, leader)
			spoiled := 0
			w.spoil = func(resp *kmsg.FetchResponse) {
				p := &resp.Topics[0].Partitions[0]
				_, rest, err := record.Next(p.RecordBatches)
				if err != nil || spoiled == 5 {
					return
				}
				if batch, _, err := record.Next(rest); err == nil {
					spoiled++
					spoil(batch)
				}
			}
			must(t, w.start())
			w.follows()
			if len(w.fatal) > 0 || spoiled != 5 {
				t.Fatalf("%d answers were spoiled, %v", spoiled, w.fatal)
			}
			ours, theirs := batchesOf(t, w.fs), batchesOf(t, leader.fs)
			if !slices.EqualFunc(ours, theirs, func(a, b record.Batch) bool { return string(a) == string(b) }) {
				t.Errorf("%d batches are not the leader's %d", len(ours), len(theirs))
			}
			if !strings.Contains(w.log.String(), "sent what cannot be appended") {
				t.Errorf("nothing was said: %s", w.log.String())
			}
		})
	}
}

// TestObserverDownloadsASnapshot: the leader's log no longer has what is missing.
func TestObserverDownloadsASnapshot(t *testing.T) {
	leader := newRig(t)
	leader.options.Machine = leader.machine
	leader.options.SnapshotBytes, leader.options.RetentionBytes, leader.options.SegmentBytes = 3000, 2000, 1500
	leader.mustStart()
	w := watch(t, leader)
	must(t, w.start())
	w.follows()
	before := w.sent
	for i := range 40 {
		leader.mustSubmit(numbered(10*i, 10)...)
		leader.tick(time.Minute)
	}
	w.follows()
	if !strings.Contains(w.log.String(), "a metadata snapshot was installed") {
		t.Fatalf("no snapshot was installed in %d requests: %s", w.sent-before, w.log.String())
	}
	leader.mustSubmit(numbered(400, 30)...)
	w.follows()
	must(t, w.q.Close(w.now))
	next := w.reborn(w.fs, log.OtherBoot)
	must(t, next.start())
	next.follows()
	for name := range files(t, next.fs) {
		if strings.HasSuffix(name, partSuffix) {
			t.Errorf("%s is left", name)
		}
	}
}

// TestObserverCutsWhatNobodyCommitted: a leader goes on from before what the observer
// has had from the one before.
func TestObserverCutsWhatNobodyCommitted(t *testing.T) {
	former := leading(t)
	former.mustSubmit(numbered(0, 20)...)
	w := watch(t, former)
	must(t, w.start())
	w.follows()
	fork, early := former.fs.Kill(), former.fs.Kill()
	w.committed = former.q.core.HighWatermark()
	former.mustSubmit(numbered(1000, 30)...) // as if only this leader had them
	w.run("the observer has what is not committed", func() bool {
		return w.q.log.View().LogEndOffset == former.q.log.View().LogEndOffset
	})
	if values := w.q.Image().Config(4, ""); len(values) != 20 {
		t.Fatalf("%d values are published, want the 20 that are committed", len(values))
	}
	w.leader, w.committed = former.again(fork, log.OtherBoot).mustStart(), protocol.NoOffset
	w.leader.mustSubmit(numbered(2000, 10)...)
	w.follows()
	if values := w.q.Image().Config(4, ""); len(values) != 30 {
		t.Fatalf("%d values are published, want 30", len(values))
	}
	if len(w.fatal) > 0 {
		t.Fatal(w.fatal)
	}

	// A leader that lacks what is committed is not followed.
	w.leader = former.again(early, log.OtherBoot)
	w.leader.now = w.leader.now.Add(time.Hour)
	w.leader.mustStart()
	for w.leader.q.core.Epoch() <= w.q.core.Epoch() {
		w.leader = w.leader.restart()
	}
	w.run("the observer stops", func() bool { return len(w.fatal) > 0 })
	if !strings.Contains(w.fatal[0].Error(), "is committed") {
		t.Fatal(w.fatal)
	}
}

// TestObserverKeepsItsSnapshot: after a start nobody has said yet what is committed, but the snapshot is.
func TestObserverKeepsItsSnapshot(t *testing.T) {
	leader := leading(t)
	leader.mustSubmit(numbered(0, 20)...)
	early := leader.fs.Kill()
	leader.mustSubmit(numbered(20, 100)...)
	w := watch(t, leader)
	w.options.SnapshotBytes = 2000
	must(t, w.start())
	w.follows()
	var taken protocol.Offset
	w.run("a snapshot is taken", func() bool {
		ids, err := listSnapshots(w.fs, w.q.dir)
		must(t, err)
		if len(ids) > 0 {
			taken = ids[len(ids)-1].End
		}
		return taken > 20
	})
	must(t, w.q.Close(w.now))
	next := w.reborn(w.fs, log.OtherBoot)
	next.leader = leader.again(early, log.OtherBoot).mustStart()
	must(t, next.start())
	for next.leader.q.core.Epoch() <= next.q.core.Epoch() {
		next.leader = next.leader.restart()
	}
	next.run("the observer stops", func() bool { return len(next.fatal) > 0 })
	if !strings.Contains(next.fatal[0].Error(), "is committed") {
		t.Error(next.fatal)
	}
	if end := next.q.log.View().LogEndOffset; end < taken {
		t.Errorf("the log was cut to %d, below the snapshot of %d", end, taken)
	}
}

// TestObserverOfAnotherCluster: a server of another cluster is passed over as long as there may be one of its own, and told of
// again after a while; when there is none it is the end.
func TestObserverOfAnotherCluster(t *testing.T) {
	w := watch(t, leading(t))
	w.options.Observe.Bootstrap = append(w.options.Observe.Bootstrap, raft.Address{ID: -3, Host: "elsewhere", Port: 9093})
	silent := true
	w.options.Observe.Send = func(to raft.Address, _ kmsg.Request, done func(kmsg.Response, error)) {
		w.waiting = append(w.waiting, func() {
			if to.ID == -2 && silent {
				done(nil, fmt.Errorf("nobody is there"))
				return
			}
			resp := kmsg.NewPtrFetchResponse()
			resp.ErrorCode = int16(protocol.InconsistentClusterID)
			done(resp, nil)
		})
	}
	must(t, w.start())
	for times := range 2 {
		w.run("the stranger is told of", func() bool { return strings.Count(w.log.String(), "is of another cluster than this node") > times })
		w.now = w.now.Add(troubleInterval)
	}
	if len(w.fatal) > 0 {
		t.Fatalf("it has ended, though one server may come: %v", w.fatal)
	}
	silent = false
	w.run("it has ended", func() bool { return len(w.fatal) > 0 })
	if said := w.fatal[0].Error(); !strings.Contains(said, "all controllers that this node is to ask") || !strings.Contains(said, "cluster.id=cluster") {
		t.Errorf("it ended with %q", said)
	}
}
