package check

import (
	"path"
	"slices"
	"strings"
	"testing"

	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/logdir"
)

// TestTorn flips bits of the bytes of every file: of every byte, but in the larger files of internal topics and of the metadata. Each is told, as a
// fault or a note, or is one of which no other file knows better (free says which). Nothing is written.
func TestTorn(t *testing.T) {
	whole := golden(t)
	top := whole.only("/d/a/meta", "/d/b/meta", "/d/a/.kafka", "/d/b/.kafka")
	for name, data := range whole {
		if strings.HasSuffix(name, "-checkpoint") && strings.Count(name, "/") == 3 {
			top[name] = data
		}
	}
	metadata := whole.only(metaHome)
	for partition, step := range map[string]int{"plain-0": 1, "txns-0": 1, "compact-0": 1, "__consumer_offsets-0": 3, "__transaction_state-0": 5} {
		t.Run(partition, func(t *testing.T) {
			here := home(whole, partition) + "/" + partition + "/"
			sweep(t, join(top, whole.only(here)), here, step)
		})
	}
	t.Run("metadata", func(t *testing.T) { sweep(t, join(top, metadata), metaHome, 13) })
	t.Run("directories", func(t *testing.T) {
		files := join(top, metadata, whole.only(home(whole, "plain-0")+"/plain-0/", home(whole, "compact-0")+"/compact-0/"))
		for name := range top {
			sweep(t, files, name, 1)
		}
		sweep(t, files, home(whole, "plain-0")+"/plain-0/"+topicFile, 1)
	})
}

// TestSealed flips bits under checksums that are right, so that what is behind them is read: nothing panics.
func TestSealed(t *testing.T) {
	whole := golden(t)
	pool := compress.NewPool()
	for _, partition := range []string{"__consumer_offsets-0", "__transaction_state-0", "txns-0", "__cluster_metadata-0"} {
		here := home(whole, partition) + "/" + partition
		files := whole.only(here+"/", "/d/a/meta", "/d/b/meta", "/d/a/.kafka", "/d/b/.kafka")
		disk := files.mem(t)
		for _, name := range files.files(here, ".log") {
			data := files[name]
			begin := 0 // of the batch
			for at := 0; at < len(data); at += sealedStep() {
				b := sizedBatch(t, data[begin:])
				for at >= begin+len(b) {
					begin += len(b)
					b = sizedBatch(t, data[begin:])
				}
				if at-begin < 21 { // where the bytes begin that the checksum covers
					continue
				}
				data[at] ^= 0x41
				seal(b)
				if err := put(disk.(readOnly).FS, name, data); err != nil {
					t.Fatal(err)
				}
				if _, err := Run(disk, goldenDirs, Options{InUse: unlocked, pool: pool}); err != nil {
					t.Fatal(err)
				}
				data[at] ^= 0x41
				seal(b)
			}
		}
	}
}

func sealedStep() int {
	if testing.Short() {
		return 229
	}
	return 23
}

func sizedBatch(t *testing.T, data []byte) record.Batch {
	t.Helper()
	b, _, err := record.Next(data)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func join(trees ...tree) tree {
	all := tree{}
	for _, f := range trees {
		for name, data := range f {
			all[name] = data
		}
	}
	return all
}

// sweep flips every step-th byte of the files below a prefix.
func sweep(t *testing.T, files tree, prefix string, step int) {
	t.Helper()
	if testing.Short() {
		step *= 16 // under the race detector
	}
	disk := files.mem(t)
	pool := compress.NewPool()
	run := func() string {
		report, err := Run(disk, goldenDirs, Options{InUse: unlocked, pool: pool})
		if err != nil {
			t.Fatal(err)
		}
		return describe(report) // with its numbers: a gap that moves is told, too
	}
	before := run()
	writable := disk.(readOnly).FS
	flips, missed := 0, 0
	for _, name := range sortedNames(files.only(prefix)) {
		data := files[name]
		for at := 0; at < len(data); at += step {
			for _, bits := range []byte{0x01, 0x80} {
				flips++
				data[at] ^= bits
				if err := put(writable, name, data); err != nil {
					t.Fatal(err)
				}
				after := run()
				if after == before && !free(name, data, at) {
					if missed++; missed <= 10 {
						t.Errorf("byte %d of %s, flipped to %#x: nothing is told (%q)", at, name, data[at], around(data, at))
					}
				}
				data[at] ^= bits
			}
		}
		if err := put(writable, name, data); err != nil {
			t.Fatal(err)
		}
	}
	if missed > 0 {
		t.Errorf("%d of %d flips are not told", missed, flips)
	}
	t.Logf("%d flips", flips)
}

func sortedNames(f tree) []string {
	var names []string
	for name := range f {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func around(data []byte, at int) []byte { return data[max(at-12, 0):min(at+12, len(data))] }

// free tells the bytes of which another value is as good, as far as the other files that are there know.
func free(name string, data []byte, at int) bool {
	begin := strings.LastIndexByte(string(data[:at]), '\n') + 1
	line, _, _ := strings.Cut(string(data[begin:]), "\n")
	digit := data[at] >= '0' && data[at] <= '9'
	switch base := path.Base(name); {
	case base == logdir.MetaPropertiesFile:
		return at < strings.Index(string(data), "\ncluster.id") && strings.Count(string(data[:at]), "\n") < 2 // comments; the date
	case base == logdir.CleanShutdownFile:
		return digit // of the broker epoch
	case base == quorumStateFile:
		return digit || at > strings.LastIndex(string(data), "votedDirectoryId") // who leads, who got the vote; a later epoch
	case base == epochFile:
		return begin > 0 && digit && strings.HasPrefix(line, "0 ") // where the first epoch begins, below the start of the log
	case base == topicFile:
		return strings.HasPrefix(line, "topic_id: ") && at-begin >= len("topic_id: ") // without the metadata
	case isCheckpoint(base):
		return digit && at-begin > strings.LastIndexByte(line, ' ') // an offset that the log reaches
	case strings.HasSuffix(base, ".timeindex"):
		return at%timeEntryBytes == timeEntryBytes-1 // another offset of the batch that has the timestamp
	case strings.HasSuffix(base, ".index"):
		return at%offsetEntryBytes == 3 // the offset at which another batch ends: of what was appended together, the last
	}
	return false
}
