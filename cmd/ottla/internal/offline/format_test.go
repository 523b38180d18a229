package offline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/store"
	"ottla/storage/vfs"
)

const clusterID = "4L6g3nShT-eMCtK--X86sw"

var start = time.UnixMilli(1_795_964_827_710)

func seeded(seed uint64) func() uint64 { return rand.New(rand.NewPCG(seed, 0)).Uint64 }

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// kafkaDefaults are the features with which Apache Kafka 4.4.0 begins.
func kafkaDefaults() []Feature {
	var features []Feature
	for _, f := range metadata.AllFeatures() {
		if f.Name != metadata.KRaftVersionFeature {
			features = append(features, Feature{f.Name, f.Max()})
		}
	}
	return features
}

func combined() FormatOptions {
	return FormatOptions{
		ClusterID: clusterID, NodeID: 1, Dirs: []string{"d/a", "d/b"}, Controller: true, ListenerName: "CONTROLLER",
		DefaultFeatures: kafkaDefaults(),
	}
}

func standalone() FormatOptions {
	o := combined()
	o.Quorum, o.Voters = Standalone, []Voter{{ID: 1, Host: "localhost", Port: 39193}}
	return o
}

func uuid(t *testing.T, text string) protocol.UUID {
	t.Helper()
	id, err := protocol.ParseUUID(text)
	must(t, err)
	return id
}

func parsedVoters(t *testing.T, text string) []Voter {
	t.Helper()
	voters, err := ParseVoters(text)
	must(t, err)
	return voters
}

func features(t *testing.T, texts ...string) []Feature {
	t.Helper()
	var list []Feature
	for _, text := range texts {
		f, err := ParseFeature(text)
		must(t, err)
		list = append(list, f)
	}
	return list
}

// accepted are the cases of testdata/format.
func accepted(t *testing.T) map[string]FormatOptions {
	cases := map[string]FormatOptions{}
	add := func(name string, o FormatOptions, change func(o *FormatOptions)) {
		change(&o)
		cases[name] = o
	}
	add("static", combined(), func(o *FormatOptions) { o.StaticVoters = true })
	add("static-N", combined(), func(o *FormatOptions) { o.StaticVoters, o.Quorum = true, NoInitialControllers })
	add("standalone", standalone(), func(o *FormatOptions) {})
	add("advertised", standalone(), func(o *FormatOptions) { o.Voters = []Voter{{ID: 1, Host: "ctl.example.com", Port: 7777}} })
	add("noinitial", combined(), func(o *FormatOptions) { o.Quorum = NoInitialControllers })
	add("initial3", combined(), func(o *FormatOptions) {
		o.Quorum = InitialControllers
		o.Voters = parsedVoters(t, "3@h3:8084:07R5amHmR32VDA6jHkGbTA,1@localhost:39193:JEXY6aqzQY-32P5TStzaFg,2@h2:8083:MvDxzVmcRsaTz33bUuRU6A")
	})
	add("initial-notme", combined(), func(o *FormatOptions) {
		o.Quorum = InitialControllers
		o.Voters = parsedVoters(t, "2@h2:8083:MvDxzVmcRsaTz33bUuRU6A,3@h3:8084:07R5amHmR32VDA6jHkGbTA")
	})
	add("release39", standalone(), func(o *FormatOptions) { o.ReleaseVersion = "3.9" })
	add("features", standalone(), func(o *FormatOptions) {
		o.Features = features(t, "share.version=0", "streams.version=0", "group.version=0", "transaction.version=0")
	})
	add("feature-mv", standalone(), func(o *FormatOptions) { o.Features = features(t, "metadata.version=25") })
	add("feature-dup", standalone(), func(o *FormatOptions) { o.Features = features(t, "group.version=1", "group.version=0") })
	add("scram", standalone(), func(o *FormatOptions) {
		o.Scram = []string{
			`SCRAM-SHA-256=[name=alice,iterations=8192,salt="N3E=",saltedpassword="YCE="]`,
			`SCRAM-SHA-512=[name=bob,salt="N3E=",password=bob-secret]`,
		}
	})
	return cases
}

// normalised lists batches and records without what the moment of writing decides.
func normalised(t *testing.T, name string, snapshot []byte) []string {
	t.Helper()
	var lines []string
	for rest := snapshot; len(rest) > 0; {
		b, after, err := record.Next(rest)
		must(t, err, b.CheckCRC())
		rest = after
		lines = append(lines, fmt.Sprintf("%s: batch %d..%d epoch %d attributes %x count %d bytes %d producer %d/%d/%d", name,
			b.BaseOffset(), b.LastOffset(), b.PartitionLeaderEpoch(), b.Attributes(), b.Count(), b.Size(), b.ProducerID(), b.ProducerEpoch(), b.BaseSequence()))
		for r, err := range record.Records(b, nil, 1<<20) {
			must(t, err)
			value := slices.Clone(r.Value)
			if kind, err := record.ParseControlKey(r.Key); b.IsControl() && err == nil && kind == record.ControlSnapshotHeader {
				clear(value[2:10])
			}
			lines = append(lines, fmt.Sprintf("%s:   %d %x = %x, %d headers", name, r.Offset, r.Key, value, len(r.Headers)))
		}
	}
	return lines
}

func TestFormatAsApacheKafka(t *testing.T) {
	cases := accepted(t)
	for _, name := range sortedNames(cases) {
		o := cases[name]
		golden, err := vfs.ReadFile(vfs.OS(), "testdata/format/"+name+".checkpoint")
		must(t, err)
		text, err := vfs.ReadFile(vfs.OS(), "testdata/format/"+name+".meta.properties")
		must(t, err)
		theirs, err := logdir.ParseMetaProperties(text)
		must(t, err)
		if o.voter() != nil && o.voter().DirectoryID.IsZero() {
			o.voter().DirectoryID = theirs.DirectoryID // the one thing that chance decides
		}
		m := vfs.NewMem(nil)
		var out bytes.Buffer
		must(t, Format(start, m, seeded(1), o, &out))
		ours, err := vfs.ReadFile(m, "d/a/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint")
		must(t, err)
		if got, want := normalised(t, name, ours), normalised(t, name, golden); !slices.Equal(got, want) {
			t.Errorf("ours:\n%s\nApache Kafka's:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		a, err := logdir.ReadMetaProperties(m, "d/a")
		must(t, err)
		b, err := logdir.ReadMetaProperties(m, "d/b")
		must(t, err)
		if a.ClusterID != clusterID || a.NodeID != 1 || a.DirectoryID.IsZero() || b.DirectoryID == a.DirectoryID || b.DirectoryID.IsZero() {
			t.Errorf("%s: the directories are %+v and %+v", name, a, b)
		}
		if o.voter() != nil && a.DirectoryID != theirs.DirectoryID {
			t.Errorf("%s: the voter's directory is %s", name, a.DirectoryID)
		}
		if entries, err := m.ReadDir("d/b"); err != nil || len(entries) != 1 {
			t.Errorf("%s: d/b holds %v, %v", name, entries, err)
		}
		if got := strings.Count(out.String(), "\n"); got != 2 {
			t.Errorf("%s: %d lines: %s", name, got, out.String())
		}
		must(t, Dump(io.Discard, m, "d/a/__cluster_metadata-0/"+firstSnapshot, DumpOptions{}))
		openStore(t, name, m.CrashWith(nil), o)
	}
}

func sortedNames[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// openStore makes sure that a node can be started on what was formatted.
func openStore(t *testing.T, when string, m *vfs.Mem, o FormatOptions) {
	t.Helper()
	s, _, err := store.Open(start, store.Options{
		FS: m, Dirs: o.Dirs, MetadataDir: o.MetadataDir, NodeID: o.NodeID, Random: seeded(3),
		LogOptions: func(string) log.Options { return log.DefaultOptions() },
	})
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	must(t, s.Close(start, true, 1))
}

func TestFormatChoosesTheVotersDirectory(t *testing.T) {
	m := vfs.NewMem(nil)
	must(t, Format(start, m, seeded(1), standalone(), io.Discard))
	meta, err := logdir.ReadMetaProperties(m, "d/a")
	must(t, err)
	var out bytes.Buffer
	must(t, Dump(&out, m, "d/a/__cluster_metadata-0/"+firstSnapshot, DumpOptions{}))
	if !strings.Contains(out.String(), "DirectoryID:"+meta.DirectoryID.String()) {
		t.Errorf("the voter is not in the directory %s:\n%s", meta.DirectoryID, out.String())
	}
}

func TestFormatWithoutDefaultsFinalizesOnlyTheRelease(t *testing.T) {
	m := vfs.NewMem(nil)
	o := standalone()
	o.DefaultFeatures = nil
	must(t, Format(start, m, seeded(1), o, io.Discard))
	var out bytes.Buffer
	must(t, Dump(&out, m, "d/a/__cluster_metadata-0/"+firstSnapshot, DumpOptions{}))
	if got := strings.Count(out.String(), "FEATURE_LEVEL_RECORD"); got != 1 || !strings.Contains(out.String(), `"name":"metadata.version","featureLevel":33`) {
		t.Errorf("%d features:\n%s", got, out.String())
	}
}

func TestFormatOfABroker(t *testing.T) {
	for _, quorum := range []Quorum{NoQuorumFlag, NoInitialControllers, InitialControllers} {
		m := vfs.NewMem(nil)
		o := combined()
		o.Controller, o.NodeID, o.Quorum = false, 2, quorum
		o.Voters = parsedVoters(t, "1@localhost:39193:JEXY6aqzQY-32P5TStzaFg")
		must(t, Format(start, m, seeded(1), o, io.Discard))
		if entries, err := m.ReadDir("d/a"); err != nil || len(entries) != 1 {
			t.Errorf("a broker's directory holds %v, %v", entries, err)
		}
	}
}

func TestFormatSeparateMetadataDirectory(t *testing.T) {
	m := vfs.NewMem(nil)
	o := standalone()
	o.MetadataDir = "d/m"
	var out bytes.Buffer
	must(t, Format(start, m, seeded(1), o, &out))
	for dir, want := range map[string]int{"d/a": 1, "d/b": 1, "d/m": 2} {
		if entries, err := m.ReadDir(dir); err != nil || len(entries) != want {
			t.Errorf("%s holds %v, %v", dir, entries, err)
		}
	}
	want := "Formatting data directory d/a with metadata.version 4.4-IV2.\nFormatting data directory d/b with metadata.version 4.4-IV2.\n" +
		"Formatting dynamic metadata voter directory d/m with metadata.version 4.4-IV2.\n"
	if out.String() != want {
		t.Errorf("it says\n%s", out.String())
	}
	openStore(t, "separate", m, o)
}

const formattedText = "version=1\ncluster.id=" + clusterID + "\nnode.id=1\ndirectory.id=JEXY6aqzQY-32P5TStzaFg\n"

func put(t *testing.T, m *vfs.Mem, name, text string) {
	t.Helper()
	must(t, m.MkdirAll(path.Dir(name)), vfs.WriteFileAtomic(m, name, []byte(text)))
}

func TestFormatRefuses(t *testing.T) {
	cases := []struct {
		name   string
		want   string
		change func(m *vfs.Mem, o *FormatOptions)
	}{
		{"no cluster id", "cluster id", func(m *vfs.Mem, o *FormatOptions) { o.ClusterID = "" }},
		{"no directory", "neither log.dirs", func(m *vfs.Mem, o *FormatOptions) { o.Dirs = nil }},
		{"standalone broker", "--standalone", func(m *vfs.Mem, o *FormatOptions) { o.Controller = false }},
		{"static standalone", "controller.quorum.voters is set", func(m *vfs.Mem, o *FormatOptions) { o.StaticVoters = true }},
		{"static initial", "controller.quorum.voters is set", func(m *vfs.Mem, o *FormatOptions) { o.StaticVoters, o.Quorum = true, InitialControllers }},
		{"no flag", "controller.quorum.voters is not set", func(m *vfs.Mem, o *FormatOptions) { o.Quorum = NoQuorumFlag }},
		{"no voter", "at least one voter", func(m *vfs.Mem, o *FormatOptions) { o.Voters = nil }},
		{"no listener", "controller.listener.names", func(m *vfs.Mem, o *FormatOptions) { o.ListenerName = "" }},
		{"other voter", "the only voter", func(m *vfs.Mem, o *FormatOptions) { o.Voters[0].ID = 2 }},
		{"voter twice", "the voter 1 is named twice", func(m *vfs.Mem, o *FormatOptions) {
			o.Quorum, o.Voters = InitialControllers, append(o.Voters, o.Voters[0])
		}},
		{"unknown release", "is not a metadata.version", func(m *vfs.Mem, o *FormatOptions) { o.ReleaseVersion = "9.9" }},
		{"old release", "cannot be started at metadata.version 3.3-IV3", func(m *vfs.Mem, o *FormatOptions) { o.ReleaseVersion = "3.3-IV3" }},
		{"future level", "cannot be started", func(m *vfs.Mem, o *FormatOptions) { o.Features = []Feature{{"metadata.version", 99}} }},
		{"release twice", "say the same thing", func(m *vfs.Mem, o *FormatOptions) {
			o.ReleaseVersion, o.Features = "4.0", []Feature{{"metadata.version", 33}}
		}},
		{"unknown feature", `no feature "foo"`, func(m *vfs.Mem, o *FormatOptions) { o.Features = []Feature{{"foo", 1}} }},
		{"unknown default", `no feature "foo"`, func(m *vfs.Mem, o *FormatOptions) { o.DefaultFeatures = []Feature{{"foo", 1}} }},
		{"high level", "group.version has no level 7", func(m *vfs.Mem, o *FormatOptions) { o.Features = []Feature{{"group.version", 7}} }},
		{"negative level", "group.version has no level -1", func(m *vfs.Mem, o *FormatOptions) { o.Features = []Feature{{"group.version", -1}} }},
		{"elr at 3.9", "eligible.leader.replicas.version level 1 needs", func(m *vfs.Mem, o *FormatOptions) {
			o.ReleaseVersion, o.Features = "3.9", []Feature{{"eligible.leader.replicas.version", 1}}
		}},
		{"kraft 0 dynamic", "knows no dynamic voters", func(m *vfs.Mem, o *FormatOptions) { o.Features = []Feature{{"kraft.version", 0}} }},
		{"kraft 1 static", "needs dynamic voters", func(m *vfs.Mem, o *FormatOptions) {
			o.StaticVoters, o.Quorum, o.Features = true, NoQuorumFlag, []Feature{{"kraft.version", 1}}
		}},
		{"scram mechanism", "SCRAM-SHA-1", func(m *vfs.Mem, o *FormatOptions) { o.Scram = []string{"SCRAM-SHA-1=[name=a,password=x]"} }},
		{"formatted one", "d/a is formatted already", func(m *vfs.Mem, o *FormatOptions) { put(t, m, "d/a/meta.properties", formattedText) }},
		{"formatted other", "d/b is formatted already", func(m *vfs.Mem, o *FormatOptions) { put(t, m, "d/b/meta.properties", formattedText) }},
		{"other cluster", "d/b belongs to the cluster other", func(m *vfs.Mem, o *FormatOptions) {
			put(t, m, "d/b/meta.properties", strings.Replace(formattedText, clusterID, "other", 1))
			o.IgnoreFormatted = true
		}},
		{"other node", "d/b belongs to node 2", func(m *vfs.Mem, o *FormatOptions) {
			put(t, m, "d/b/meta.properties", strings.Replace(formattedText, "node.id=1", "node.id=2", 1))
			o.IgnoreFormatted = true
		}},
		{"garbage", "cannot tell whether d/b is formatted", func(m *vfs.Mem, o *FormatOptions) {
			put(t, m, "d/b/meta.properties", "garbage")
			o.IgnoreFormatted = true
		}},
		{"unreadable", "cannot tell whether d/b is formatted", func(m *vfs.Mem, o *FormatOptions) {
			m.OnOperation(vfs.Script(vfs.Fault{Pattern: "d/b/meta.properties", Err: syscall.EIO}))
		}},
		{"metadata log", "d/a has no meta.properties, but holds the metadata log", func(m *vfs.Mem, o *FormatOptions) {
			put(t, m, "d/a/__cluster_metadata-0/00000000000000000000.log", "records")
		}},
	}
	for _, c := range cases {
		m, o := vfs.NewMem(nil), standalone()
		c.change(m, &o)
		before := tree(m, "/")
		err := Format(start, m, seeded(1), o, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, not %q", c.name, err, c.want)
		}
		m.OnOperation(nil)
		if after := tree(m, "/"); !slices.Equal(before, after) {
			t.Errorf("%s: the disk has changed to %q", c.name, after)
		}
	}
}

func tree(m *vfs.Mem, dir string) []string {
	var lines []string
	entries, _ := m.ReadDir(dir)
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		data, _ := vfs.ReadFile(m, name) // nothing for a directory
		lines = append(append(lines, name+": "+string(data)), tree(m, name)...)
	}
	return lines
}

func TestFormatIgnoresFormatted(t *testing.T) {
	m, o := vfs.NewMem(nil), standalone()
	o.IgnoreFormatted = true
	put(t, m, "d/a/meta.properties", formattedText)
	var out bytes.Buffer
	must(t, Format(start, m, seeded(1), o, &out))
	if !strings.HasPrefix(out.String(), "Formatting data directory d/b") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("it says %q", out.String())
	}
	if got, err := vfs.ReadFile(m, "d/a/meta.properties"); err != nil || string(got) != formattedText {
		t.Errorf("the formatted directory was changed: %q, %v", got, err)
	}
	out.Reset()
	must(t, Format(start, m, seeded(1), o, &out))
	if out.String() != "All of the log directories are formatted already.\n" {
		t.Errorf("it says %q", out.String())
	}
}

func checkFormat(t *testing.T, when string, seed uint64, k *vfs.Mem) {
	t.Helper()
	o := standalone()
	must(t, FinishFormat(k, o.Dirs, ""))
	ok, err := CheckAutoFormat(k, o.Dirs, "")
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	if ok {
		must(t, Format(start, k, seeded(seed+1000), o, io.Discard))
	} else {
		openStore(t, when, k, o)
	}
	k = k.CrashWith(nil)
	openStore(t, when, k, o)
	must(t, Dump(io.Discard, k, "d/a/__cluster_metadata-0/"+firstSnapshot, DumpOptions{}))
	meta, err := logdir.ReadMetaProperties(k, "d/a")
	must(t, err)
	var out bytes.Buffer
	must(t, Dump(&out, k, "d/a/__cluster_metadata-0/"+firstSnapshot, DumpOptions{}))
	if !strings.Contains(out.String(), "DirectoryID:"+meta.DirectoryID.String()) {
		t.Fatalf("%s: the voter is not in the directory %s", when, meta.DirectoryID)
	}
}

// TestFormatCrashStates goes through every class of what a power cut may leave, before each operation.
func TestFormatCrashStates(t *testing.T) {
	recoveries := 0
	m := vfs.NewMem(nil)
	all := func(when string) {
		m.CrashStates(func(state string, left *vfs.Mem) {
			recoveries++
			checkFormat(t, fmt.Sprintf("power cut (%s) before %s", state, when), 0, left)
		})
	}
	m.OnOperation(func(op vfs.Operation) error {
		if op.Kind.Changes() {
			all(op.String())
		}
		return nil
	})
	must(t, Format(start, m, seeded(0), standalone(), io.Discard))
	m.OnOperation(nil)
	all("nothing more")
	t.Logf("%d recoveries: crash states of format", recoveries)
	if recoveries < 100 {
		t.Error("that is too few")
	}
}

// TestFormatCrashes cuts the power at every operation: afterwards, but for what FinishFormat ends, all directories are
// formatted or none is, a second format does the work, and a node starts.
func TestFormatCrashes(t *testing.T) {
	crashes := 0
	for seed := range uint64(20) {
		m, o := vfs.NewMem(seeded(seed)), standalone()
		check := func(when string, k *vfs.Mem) {
			crashes++
			checkFormat(t, fmt.Sprintf("seed %d, %s", seed, when), seed, k)
		}
		m.OnOperation(func(op vfs.Operation) error {
			if op.Kind.Changes() {
				check("before "+op.String(), m.Kill())
				check("before "+op.String(), m.CrashWith(nil))
				check("before "+op.String(), m.Crash())
			}
			return nil
		})
		must(t, Format(start, m, seeded(seed), o, io.Discard))
		m.OnOperation(nil)
		if ok, err := CheckAutoFormat(m.CrashWith(nil), o.Dirs, ""); ok || err != nil {
			t.Fatalf("seed %d: finished, yet after a power cut it is %v, %v", seed, ok, err)
		}
	}
	if crashes < 500 {
		t.Errorf("only %d crashes were tried", crashes)
	}
}

func TestFormatReportsFaults(t *testing.T) {
	for at := int64(1); ; at++ {
		m, reached := vfs.NewMem(nil), false
		m.OnOperation(func(op vfs.Operation) error {
			if op.Number != at {
				return nil
			}
			reached = true
			return syscall.EIO
		})
		err := Format(start, m, seeded(1), standalone(), io.Discard)
		if !reached {
			must(t, err)
			return
		}
		m.OnOperation(nil)
		if err == nil {
			continue // a file that is closed, or looked for in vain
		}
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("operation %d: %v", at, err)
		}
	}
}

func TestCheckAutoFormat(t *testing.T) {
	cases := []struct {
		name  string
		files []string
		ok    bool
		want  string
	}{
		{"nothing", nil, true, ""},
		{"empty directories", []string{"d/a/", "d/b/"}, true, ""},
		{"lost+found", []string{"d/a/lost+found/"}, true, ""},
		{"interrupted format", []string{"d/a/__cluster_metadata-0/" + firstSnapshot, "d/a/meta.properties.tmp", "d/b/"}, true, ""},
		{"formatted", []string{"d/a/meta.properties", "d/b/meta.properties"}, false, ""},
		{"one of two", []string{"d/a/meta.properties"}, false, "d/a is formatted and d/b is not"},
		{"partition", []string{"d/b/t-0/"}, false, "d/b has no meta.properties and is not empty (it holds t-0)"},
		{"metadata log", []string{"d/a/__cluster_metadata-0/00000000000000000000.log"}, false, "it holds __cluster_metadata-0/00000000000000000000.log"},
		{"other file", []string{"d/a/photo.jpg"}, false, "photo.jpg"},
	}
	for _, c := range cases {
		m := vfs.NewMem(nil)
		for _, file := range c.files {
			if strings.HasSuffix(file, "/") {
				must(t, m.MkdirAll(file))
			} else {
				put(t, m, file, formattedText)
			}
		}
		ok, err := CheckAutoFormat(m, []string{"d/a", "d/b"}, "")
		if ok != c.ok || (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, %v", c.name, ok, err)
		}
	}
}

// TestFinishFormat: only what an interrupted format of the same cluster and node left is put in place.
func TestFinishFormat(t *testing.T) {
	other := strings.Replace(formattedText, "node.id=1", "node.id=2", 1)
	for name, c := range map[string]struct {
		files    map[string]string
		finished bool
	}{
		"interrupted":          {map[string]string{"d/b/meta.properties": formattedText, "d/a/meta.properties.tmp": formattedText}, true},
		"another node":         {map[string]string{"d/b/meta.properties": formattedText, "d/a/meta.properties.tmp": other}, false},
		"nothing prepared":     {map[string]string{"d/b/meta.properties": formattedText}, false},
		"torn":                 {map[string]string{"d/b/meta.properties": formattedText, "d/a/meta.properties.tmp": "version=1\n"}, false},
		"none in place":        {map[string]string{"d/b/meta.properties.tmp": formattedText, "d/a/meta.properties.tmp": formattedText}, false},
		"holds a partition":    {map[string]string{"d/b/meta.properties": formattedText, "d/a/meta.properties.tmp": formattedText, "d/a/t-0/x.log": "x"}, false},
		"the other is damaged": {map[string]string{"d/b/meta.properties": "garbage", "d/a/meta.properties.tmp": formattedText}, false},
	} {
		m := vfs.NewMem(nil)
		for file, text := range c.files {
			put(t, m, file, text)
		}
		must(t, FinishFormat(m, []string{"d/a", "d/b"}, ""))
		if _, err := logdir.ReadMetaProperties(m, "d/a"); (err == nil) != c.finished {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseVoters(t *testing.T) {
	got := parsedVoters(t, "1@localhost:39193:JEXY6aqzQY-32P5TStzaFg, 20@[::1]:80:MvDxzVmcRsaTz33bUuRU6A")
	want := []Voter{{1, uuid(t, "JEXY6aqzQY-32P5TStzaFg"), "localhost", 39193}, {20, uuid(t, "MvDxzVmcRsaTz33bUuRU6A"), "::1", 80}}
	if !slices.Equal(got, want) {
		t.Errorf("parsed %+v", got)
	}
	for _, bad := range []string{
		"", "1", "1@", "1@h", "1@h:1", "1@h:1:short", "x@h:1:JEXY6aqzQY-32P5TStzaFg", "-1@h:1:JEXY6aqzQY-32P5TStzaFg",
		"1@h:99999:JEXY6aqzQY-32P5TStzaFg", "1@:1:JEXY6aqzQY-32P5TStzaFg", "1@h:1:JEXY6aqzQY-32P5TStzaFg,",
	} {
		if v, err := ParseVoters(bad); err == nil {
			t.Errorf("%q reads as %+v", bad, v)
		}
	}
}

func TestParseFeature(t *testing.T) {
	if f, err := ParseFeature(" group.version = 1"); err != nil || f != (Feature{"group.version", 1}) {
		t.Errorf("%+v, %v", f, err)
	}
	for _, bad := range []string{"", "x", "x=", "x=y", "x=99999"} {
		if f, err := ParseFeature(bad); err == nil {
			t.Errorf("%q reads as %+v", bad, f)
		}
	}
}

func TestParseScram(t *testing.T) {
	for text, want := range map[string]string{
		"x":              "the form is",
		"SCRAM-SHA-256=": "must stand in [ and ]", "SCRAM-SHA-256=[name=a": "must stand in [ and ]",
		"SCRAM-SHA-256=[]":                                                    "key=value",
		"SCRAM-SHA-256=[password=x]":                                          "the name is missing",
		"SCRAM-SHA-256=[name=a]":                                              "either password or saltedpassword",
		"SCRAM-SHA-256=[name=a,foo=b]":                                        `no key "foo"`,
		"SCRAM-SHA-256=[name=a,password=x,iterations=1000]":                   "iterations must be from 4096 to 16384",
		"SCRAM-SHA-256=[name=a,password=x,iterations=20000]":                  "iterations must be from 4096 to 16384",
		"SCRAM-SHA-256=[name=a,password=x,iterations=many]":                   "the value of iterations cannot be read",
		"SCRAM-SHA-256=[name=a,password=x,salt=%]":                            "the value of salt cannot be read",
		`SCRAM-SHA-256=[name=a,saltedpassword="YCE="]`:                        "needs the salt",
		`SCRAM-SHA-256=[name=a,password=x,saltedpassword="YCE"]`:              "the value of saltedpassword",
		`SCRAM-SHA-256=[name=a,password=x,salt="N3E=",saltedpassword="YCE="]`: "cannot both be given",
		"SCRAM-SHA-256=[name=a,password=top-secret]":                          "",
	} {
		credentials, err := parseScram([]string{text}, metadata.MaxMetadataVersion, seeded(1))
		switch {
		case want == "" && (err != nil || len(credentials[0].salt) != saltBytes || credentials[0].iterations != 4096):
			t.Errorf("%s: %+v, %v", text, credentials, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, not %q", text, err, want)
		}
	}
	if _, err := parseScram([]string{"SCRAM-SHA-256=[name=a,password=x]"}, metadata.OldestMetadataVersion, seeded(1)); err == nil {
		t.Error("an old release has no credentials, yet one was accepted")
	}
}
