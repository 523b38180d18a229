package quorum

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/protocol/schema"
	"ottla/storage/log"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

const metaDir = "meta"

var (
	partitionDir = path.Join(metaDir, "__cluster_metadata-0")
	localKey     = raft.ReplicaKey{ID: 1, Directory: protocol.UUID{0xd1}}
	endpoints    = []raft.Endpoint{{Name: "CONTROLLER", Host: "localhost", Port: 9093}}
)

// toy is a machine whose state is a list of values. Each is a configuration of
// all brokers in the log, since the log must hold metadata records.
type toy struct {
	values    []string
	committed protocol.Offset
	active    bool
	ticks     []time.Time
}

func toyRecord(n int, value string) machine.Record {
	r := schema.NewConfigRecord()
	r.ResourceType, r.Name, r.Value = 4, fmt.Sprintf("k%05d", n), &value
	return machine.Record{Value: schema.EncodeMetadata(r, 0)}
}

func (m *toy) Restore(_ protocol.Offset, _ protocol.LeaderEpoch, _ int64, records []machine.Record) error {
	*m = toy{}
	return m.Apply(0, 0, 0, records)
}

func (m *toy) Apply(_ protocol.Offset, _ protocol.LeaderEpoch, _ int64, records []machine.Record) error {
	for _, r := range records {
		decoded, _, err := schema.DecodeMetadata(r.Value)
		if err != nil {
			return err
		}
		if config, ok := decoded.(*schema.ConfigRecord); ok {
			m.values = append(m.values, *config.Value)
		}
	}
	return nil
}

func (m *toy) Committed(end protocol.Offset) { m.committed = end }

func (m *toy) Activate(machine.Turn, protocol.LeaderEpoch) (machine.Result, error) {
	m.active = true
	return machine.Result{}, nil
}

func (m *toy) Resign() { m.active = false }

// manyValues is a request for so many divisible records.
type manyValues struct {
	count int
	value string
}

func (m *toy) Handle(turn machine.Turn, request any) (machine.Result, error) {
	if !m.active {
		panic("asked while not active")
	}
	switch request := request.(type) {
	case schema.MetadataRecord:
		return machine.Result{Records: []machine.Record{{Value: schema.EncodeMetadata(request, 0)}}}, nil
	case manyValues:
		result := machine.Result{Divisible: true, Reply: "many"}
		for i := range request.count {
			result.Records = append(result.Records, toyRecord(len(m.values)+i, request.value))
		}
		return result, nil
	case string:
		switch request {
		case "read":
			return machine.Result{Reply: strings.Join(m.values, " ")}, nil
		case "refuse":
			return machine.Result{}, protocol.Errorf(protocol.InvalidRequest, "no")
		}
		return machine.Result{Records: []machine.Record{toyRecord(len(m.values), request)}, Reply: fmt.Sprint(turn.Next)}, nil
	}
	panic("unknown request")
}

func (m *toy) Tick(turn machine.Turn) (machine.Result, error) {
	m.ticks = append(m.ticks, turn.Now)
	return machine.Result{}, nil
}

func (m *toy) NextDeadline() time.Time { return time.Time{} }

// rig is a quorum over a disk in memory.
type rig struct {
	t       testing.TB
	fs      *vfs.Mem
	now     time.Time
	machine machine.Machine
	options Options
	q       *Quorum
	fatal   []error
	images  []*metadata.Image
	acked   []string
	log     strings.Builder
}

func seeded(seed uint64) func() uint64 { return rand.New(rand.NewPCG(seed, 1)).Uint64 }

// newRig is a rig on a fresh disk that was formatted with a voter.
func newRig(t testing.TB) *rig {
	r := rigOn(t, vfs.NewMem(seeded(1)))
	r.format(1)
	return r
}

// rigOn is a rig on a disk as it is.
func rigOn(t testing.TB, disk *vfs.Mem) *rig {
	r := &rig{t: t, fs: disk, now: time.UnixMilli(1_800_000_000_000), machine: &toy{}}
	disk.SetClock(func() time.Time { return r.now })
	r.options = Options{
		Env: log.Env{FS: disk, Files: segment.NewFileCache(disk, 8), Pool: compress.NewPool()},
		Dir: metaDir, Local: localKey, Trust: log.OtherBoot, Endpoints: endpoints,
		SegmentBytes: 1 << 20, SegmentAge: time.Hour, SnapshotBytes: 1 << 20, SnapshotAge: time.Hour, RetentionBytes: -1, RetentionAge: -1,
		OnImage: func(_ time.Time, before, after *metadata.Image) {
			if len(r.images) > 0 && r.images[len(r.images)-1] != before {
				t.Error("an Image was published that does not follow the one before")
			}
			r.images = append(r.images, after)
		},
		OnFatal: func(err error) { r.fatal = append(r.fatal, err) },
		Logger:  slog.New(slog.NewTextHandler(&r.log, nil)),
	}
	return r
}

// format writes what a format leaves: the voters and the first records.
func (r *rig) format(kraftVersion int16) {
	r.t.Helper()
	must(r.t, r.fs.MkdirAll(partitionDir))
	writer := snapshotFile{pool: compress.NewPool()}
	writer.control(record.SnapshotHeader{LastContainedLogTimestamp: r.now.UnixMilli()})
	if kraftVersion > 0 {
		writer.control(record.KRaftVersion{KRaftVersion: kraftVersion})
		writer.control(votersToRecord(raft.NewVoterSet(raft.Voter{ReplicaKey: localKey, Endpoints: endpoints, MaxKRaftVersion: 1})))
	}
	level := schema.NewFeatureLevelRecord()
	level.Name, level.FeatureLevel = metadata.MetadataVersionFeature, int16(metadata.MaxMetadataVersion)
	writer.data(schema.EncodeMetadata(level, 0))
	writer.control(record.SnapshotFooter{})
	must(r.t, vfs.WriteFileAtomic(r.fs, path.Join(partitionDir, snapshotID{}.file()), writer.bytes()))
	if kraftVersion == 0 {
		r.options.StaticVoters = raft.NewVoterSet(raft.Voter{ReplicaKey: raft.ReplicaKey{ID: 1}, Endpoints: endpoints})
	}
	r.fs.SyncAll()
}

// snapshotFile builds a snapshot by hand.
type snapshotFile struct {
	pool    *compress.Pool
	builder *record.Builder
	kind    bool
	next    protocol.Offset
	content []byte
}

func (w *snapshotFile) open(control bool) {
	if w.builder != nil && w.kind != control {
		w.flush()
	}
	if w.builder == nil {
		options := record.PlainOptions()
		options.BaseOffset, options.Control, options.PartitionLeaderEpoch = w.next, control, 0
		w.builder, w.kind = record.NewBuilder(options), control
	}
}

func (w *snapshotFile) flush() {
	w.next += protocol.Offset(w.builder.Count())
	w.content = append(w.content, w.builder.Build(w.pool)...)
	w.builder = nil
}

func (w *snapshotFile) control(c controlRecord) {
	w.open(true)
	key, value := c.Encode()
	w.builder.Append(1_800_000_000_000, key, value, nil)
}

func (w *snapshotFile) data(value []byte) {
	w.open(false)
	w.builder.Append(1_800_000_000_000, nil, value, nil)
}

func (w *snapshotFile) bytes() []byte {
	w.flush()
	return w.content
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *rig) open() error {
	r.images = nil
	q, err := Open(r.now, r.options)
	if err != nil {
		return err
	}
	r.q = q
	return nil
}

func (r *rig) start() error {
	if err := r.open(); err != nil {
		return err
	}
	return r.q.Start(r.now)
}

func (r *rig) mustStart() *rig {
	r.t.Helper()
	must(r.t, r.start())
	return r
}

// submit asks and notes what was acknowledged.
func (r *rig) submit(value string) error {
	r.t.Helper()
	answered := false
	var failure error
	r.q.Submit(r.now, value, func(_ any, err error) {
		answered, failure = true, err
		if err == nil {
			r.acked = append(r.acked, value)
		}
	})
	if !answered {
		r.t.Fatalf("%q was not answered", value)
	}
	return failure
}

func (r *rig) mustSubmit(values ...string) {
	r.t.Helper()
	for _, value := range values {
		must(r.t, r.submit(value))
	}
}

// tick lets time pass and ticks.
func (r *rig) tick(after time.Duration) {
	r.now = r.now.Add(after)
	r.q.Tick(r.now)
}

// again opens the disk with a new machine, as after the death of the process.
func (r *rig) again(disk *vfs.Mem, trust log.Trust) *rig {
	next := rigOn(r.t, disk)
	next.now, next.acked = r.now.Add(time.Minute), slices.Clone(r.acked)
	if _, isToy := r.machine.(*toy); !isToy {
		next.machine = newCluster(r.t)
	}
	next.options.Trust, next.options.Machine = trust, next.machine
	next.options.Local, next.options.StaticVoters, next.options.Endpoints = r.options.Local, r.options.StaticVoters, r.options.Endpoints
	next.options.SegmentBytes, next.options.SegmentAge = r.options.SegmentBytes, r.options.SegmentAge
	next.options.SnapshotBytes, next.options.SnapshotAge = r.options.SnapshotBytes, r.options.SnapshotAge
	next.options.RetentionBytes, next.options.RetentionAge = r.options.RetentionBytes, r.options.RetentionAge
	return next
}

// restart closes in order and opens again.
func (r *rig) restart() *rig {
	r.t.Helper()
	must(r.t, r.q.Close(r.now))
	return r.again(r.fs, log.Clean).mustStart()
}

// holds checks that machine and Image have everything acknowledged, in order;
// what was asked but not acknowledged may be there too.
func (r *rig) holds() {
	r.t.Helper()
	state := r.machine.(*toy).values
	if missing := missingFrom(state, r.acked); missing != "" {
		r.t.Fatalf("acknowledged, and not in the machine: %s of %v", missing, state)
	}
	image := r.q.Image().Config(4, "")
	if len(image) != len(state) {
		r.t.Fatalf("the Image holds %d values, the machine %d", len(image), len(state))
	}
	for i, value := range state {
		if got := image[fmt.Sprintf("k%05d", i)]; got != value {
			r.t.Fatalf("value %d is %q in the Image and %q in the machine", i, got, value)
		}
	}
}

// missingFrom finds the first of wanted that is not in have, in order.
func missingFrom(have, wanted []string) string {
	for _, value := range wanted {
		at := slices.Index(have, value)
		if at < 0 {
			return value
		}
		have = have[at+1:]
	}
	return ""
}

// batches reads what the log files hold.
func batchesOf(t testing.TB, disk vfs.FS) []record.Batch {
	t.Helper()
	bases, err := segmentBases(disk, partitionDir)
	if err != nil {
		t.Fatal(err)
	}
	var batches []record.Batch
	for _, base := range bases {
		content, err := vfs.ReadFile(disk, path.Join(partitionDir, fmt.Sprintf("%020d.log", base)))
		if err != nil {
			t.Fatal(err)
		}
		for len(content) > 0 {
			batch, rest, err := record.Next(content)
			if err != nil || batch.CheckCRC() != nil {
				break
			}
			batches, content = append(batches, batch), rest
		}
	}
	return batches
}

// files gives every file of the metadata directory and its content.
func files(t testing.TB, disk vfs.FS) map[string]string {
	t.Helper()
	found := map[string]string{}
	var visit func(dir string)
	visit = func(dir string) {
		entries, err := disk.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		must(t, err)
		for _, entry := range entries {
			name := path.Join(dir, entry.Name)
			if entry.Dir {
				found[name] = "directory"
				visit(name)
				continue
			}
			content, err := vfs.ReadFile(disk, name)
			must(t, err)
			found[name] = string(content)
		}
	}
	visit(metaDir)
	return found
}

// sameFiles tells what changed.
func sameFiles(before, after map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if content, ok := after[name]; !ok {
			return fmt.Errorf("%s is gone", name)
		} else if content != before[name] {
			return fmt.Errorf("%s has changed", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[name]; !ok {
			return fmt.Errorf("%s is new", name)
		}
	}
	return nil
}

// writeFile replaces a file durably.
func writeFile(t testing.TB, disk *vfs.Mem, name string, content []byte) {
	t.Helper()
	must(t, vfs.WriteFileAtomic(disk, name, content))
	disk.SyncAll()
}

// load copies a directory of the machine that runs the test into a disk.
func load(t testing.TB, disk *vfs.Mem, from string) {
	t.Helper()
	must(t, filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := path.Join(metaDir, filepath.ToSlash(relative))
		if entry.IsDir() {
			return disk.MkdirAll(target)
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, "index") {
			content = append(content, make([]byte, 1<<20-len(content)%8)...) // preallocated
		}
		return vfs.WriteFileAtomic(disk, target, content)
	}))
	disk.SyncAll()
}
