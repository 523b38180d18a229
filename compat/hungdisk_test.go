//go:build compat

package compat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/powercut"
)

// hungLimit is how long one step may take on a busy machine.
const hungLimit = 4 * time.Minute

// hungTimeout is ottla.disk.timeout.ms, long enough for a slow disk that others use too.
const hungTimeout = 10 * time.Second

const (
	hungTopic      = "kept"
	hungPartitions = 4
)

// TestHungDisk freezes the file system of one of two log directories under load: every write and fsync hangs. Its partitions go
// offline, the others go on; a stop does not wait for it; after a thaw nothing that was acknowledged is missing. A node whose only
// directory hangs ends.
func TestHungDisk(t *testing.T) {
	if err := harness.CheckInstalled("ottla"); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"mkfs.ext4", "losetup", "fsfreeze"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("run `compat/run.sh install` first: %v", err)
		}
	}
	needRoot(t)
	good, bad := newHungDisk(t), newHungDisk(t)
	h := newHung(t, "hung-two", bad, good.Mount+"/data,"+bad.Mount+"/data")
	h.start()
	h.check(h.makeTopic)
	h.load()

	thaw := h.freeze()
	h.check(h.goesOffline)
	h.check(h.othersGoOn)
	h.check(h.told)
	h.check(h.endsThoughItHangs)
	h.must(thaw())
	<-h.node.Process().Done()
	h.start()
	h.endLoad()
	h.check(h.judge)

	h.load()
	thaw = h.freeze()
	h.check(h.goesOffline)
	h.must(thaw())
	h.check(h.othersGoOn) // what was left behind is done meanwhile
	h.check(h.told)
	h.must(h.node.Kill())
	h.start()
	h.endLoad()
	h.check(h.judge)
	h.node.Close()

	one := newHung(t, "hung-one", bad, bad.Mount+"/only")
	one.start()
	one.check(one.makeTopic)
	one.load()
	thaw = one.freeze()
	one.check(one.endsByItself)
	one.must(thaw())
	if code := one.node.Process().Wait(); code != 1 {
		t.Errorf("the node ended with status %d", code)
	}
	one.start()
	one.endLoad()
	one.check(one.judge)
}

func newHungDisk(t *testing.T) *powercut.Disk {
	t.Helper()
	disk, err := powercut.NewDiskOf("ext4", t.TempDir(), 128<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	return disk
}

// hung is a node and its producers, one a partition.
type hung struct {
	t    *testing.T
	disk *powercut.Disk // which is frozen
	node *harness.Node
	on   map[int32]bool // partitions in the directory that hangs

	acked [hungPartitions]atomic.Int64 // records of a partition that were acknowledged, over all
	stop  context.CancelFunc
	ended sync.WaitGroup
}

func newHung(t *testing.T, name string, disk *powercut.Disk, dirs string) *hung {
	t.Helper()
	h := &hung{t: t, disk: disk, on: map[int32]bool{}}
	var err error
	h.node, err = harness.NewNode(harness.Options{Kind: harness.Ottla, Name: name, Dir: workDir(t), DataDir: dirs, Properties: map[string]string{
		"ottla.disk.timeout.ms": strconv.Itoa(int(hungTimeout.Milliseconds())), "log.flush.offset.checkpoint.interval.ms": "1000",
		"log.segment.bytes": "1048576",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.node.Close)
	t.Cleanup(h.endLoad)
	return h
}

func (h *hung) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatalf("%v\nlast log lines of the server:\n%s", err, h.node.LogTail(30))
	}
}

func (h *hung) start() {
	h.t.Helper()
	_, err := h.node.Start(context.Background())
	h.must(err)
}

func (h *hung) check(step func(context.Context) error) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hungLimit)
	defer cancel()
	h.must(step(ctx))
}

// until waits for something.
func (h *hung) until(ctx context.Context, what string, is func() bool) error {
	for !is() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %s", what, hungLimit)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

func (h *hung) freeze() (thaw func() error) {
	h.t.Helper()
	thaw, err := h.disk.Freeze()
	h.must(err)
	h.t.Cleanup(func() { _ = thaw() }) // before the node is closed; it was thawed long ago if all went well
	harness.Progress("hungdisk: %s is frozen", h.node.LogPath())
	return thaw
}

func (h *hung) admin(act func(*kadm.Client) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(h.node.Addr()), kgo.MetadataMinAge(50*time.Millisecond)) // it keeps answers for as long
	if err != nil {
		return err
	}
	defer client.Close()
	return act(kadm.NewClient(client))
}

// makeTopic also finds out which partitions lie where.
func (h *hung) makeTopic(ctx context.Context) error {
	if err := franz.New(h.node.Addr()).CreateTopic(ctx, hungTopic, hungPartitions, nil); err != nil {
		return err
	}
	return h.admin(func(admin *kadm.Client) error {
		described, err := admin.DescribeAllLogDirs(ctx, nil)
		if err != nil {
			return err
		}
		described.Each(func(dir kadm.DescribedLogDir) {
			if !strings.HasPrefix(dir.Dir, h.disk.Mount) {
				return
			}
			for p := range dir.Topics[hungTopic] {
				h.on[p] = true
			}
		})
		if len(h.on) == 0 {
			return errors.New("nothing lies in the directory that is to hang")
		}
		return nil
	})
}

// load starts a producer with acks=all for each partition, and waits until all are at it.
func (h *hung) load() {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h.stop = cancel
	var from [hungPartitions]int64
	for p := range from {
		from[p] = h.acked[p].Load()
		h.ended.Add(1)
		go h.produce(ctx, int32(p))
	}
	h.check(func(ctx context.Context) error {
		for p := range from {
			if err := h.until(ctx, fmt.Sprintf("the producer of partition %d begins", p), func() bool { return h.acked[p].Load() > from[p]+20 }); err != nil {
				return err
			}
		}
		return nil
	})
}

func (h *hung) produce(ctx context.Context, partition int32) {
	defer h.ended.Done()
	client, err := kgo.NewClient(kgo.SeedBrokers(h.node.Addr()), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.AlwaysRetryEOF())
	if err != nil {
		h.t.Error(err)
		return
	}
	defer client.Close()
	for n := h.acked[partition].Load(); ctx.Err() == nil; n++ {
		err := client.ProduceSync(ctx, &kgo.Record{Topic: hungTopic, Partition: partition, Value: []byte(strconv.FormatInt(n, 10)), Headers: []kgo.RecordHeader{{Value: make([]byte, 500)}}}).FirstErr()
		switch {
		case err == nil:
			h.acked[partition].Store(n + 1)
			<-time.After(time.Millisecond) // the disk is small
		case ctx.Err() == nil:
			h.t.Errorf("partition %d: the producer gave record %d up: %v", partition, n, err)
			return
		}
	}
}

// endLoad ends the producers. One whose record may be in the log already waits for the server; it is left behind if that is gone.
func (h *hung) endLoad() {
	if h.stop == nil {
		return
	}
	h.stop()
	h.stop = nil
	if !endsWithin(hungLimit, h.ended.Wait) {
		h.t.Error("a producer does not end")
	}
}

// endsWithin tells whether something comes to its end in time.
func endsWithin(limit time.Duration, wait func()) bool {
	ended := make(chan struct{})
	go func() {
		wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-time.After(limit):
		return false
	}
}

// goesOffline waits until the cluster knows.
func (h *hung) goesOffline(ctx context.Context) error {
	since := time.Now()
	err := h.admin(func(admin *kadm.Client) error {
		return h.until(ctx, "the partitions are offline in the metadata, and the directory in DescribeLogDirs", func() bool {
			meta, err := admin.Metadata(ctx, hungTopic)
			if err != nil {
				return false
			}
			for p, detail := range meta.Topics[hungTopic].Partitions {
				if h.on[p] != (detail.Leader < 0 && len(detail.OfflineReplicas) == 1) {
					return false
				}
			}
			dirs, err := admin.DescribeAllLogDirs(ctx, nil)
			if err != nil {
				return false
			}
			offline := map[bool]int{}
			dirs.Each(func(d kadm.DescribedLogDir) {
				offline[strings.HasPrefix(d.Dir, h.disk.Mount) && errors.Is(d.Err, kerr.KafkaStorageError)]++
			})
			return offline[true] == 1 && offline[false] == 1
		})
	})
	harness.Progress("hungdisk: the directory is offline after %.1f s (limit %v)", time.Since(since).Seconds(), hungTimeout)
	return err
}

// othersGoOn waits until the producers of the other directory are acknowledged more.
func (h *hung) othersGoOn(ctx context.Context) error {
	for p := range h.acked {
		if h.on[int32(p)] {
			continue
		}
		from := h.acked[p].Load()
		if err := h.until(ctx, fmt.Sprintf("the producer of partition %d goes on", p), func() bool { return h.acked[p].Load() > from+200 }); err != nil {
			return err
		}
	}
	name := "made-" + strconv.FormatInt(time.Now().UnixNano(), 10)
	return franz.New(h.node.Addr()).CreateTopic(ctx, name, 1, nil)
}

// told asks what a producer of each partition is told.
func (h *hung) told(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(h.node.Addr()), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableIdempotentWrite(),
		kgo.RecordRetries(0), kgo.RequestRetries(0))
	if err != nil {
		return err
	}
	defer client.Close()
	for p := range int32(hungPartitions) {
		if !h.on[p] {
			continue
		}
		err := client.ProduceSync(ctx, &kgo.Record{Topic: hungTopic, Partition: p, Value: []byte("probe")}).FirstErr()
		if !errors.Is(err, kerr.KafkaStorageError) && !errors.Is(err, kerr.LeaderNotAvailable) && !errors.Is(err, kerr.NotLeaderForPartition) {
			return fmt.Errorf("partition %d: a producer is told %w", p, err)
		}
	}
	return nil
}

// gone tells that the process has ended as far as it can: threads that wait for the disk keep what is left of it.
func (h *hung) gone() bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(h.node.Process().Pid()), "stat"))
	if err != nil {
		return true
	}
	_, state, _ := bytes.Cut(stat, []byte(") "))
	return len(state) > 0 && (state[0] == 'Z' || state[0] == 'X')
}

func (h *hung) endsThoughItHangs(ctx context.Context) error {
	since := time.Now()
	if err := h.node.Process().Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err := h.until(ctx, "the process ends though a disk hangs", h.gone)
	harness.Progress("hungdisk: SIGTERM takes %.1f s", time.Since(since).Seconds())
	return err
}

func (h *hung) endsByItself(ctx context.Context) error {
	since := time.Now()
	if err := h.until(ctx, "the process ends by itself", h.gone); err != nil {
		return err
	}
	harness.Progress("hungdisk: the node with one directory has ended after %.1f s", time.Since(since).Seconds())
	if log := h.node.LogTail(20); !strings.Contains(log, "the node cannot go on") || !strings.Contains(log, "hangs") || !strings.Contains(log, h.disk.Mount) {
		return fmt.Errorf("its last words do not say why:\n%s", log)
	}
	return nil
}

// judge reads everything: each record once, in order, up to what was acknowledged at least.
func (h *hung) judge(ctx context.Context) error {
	if err := h.admin(func(admin *kadm.Client) error {
		return h.until(ctx, "every partition has a leader again", func() bool {
			meta, err := admin.Metadata(ctx, hungTopic)
			if err != nil {
				return false
			}
			for _, p := range meta.Topics[hungTopic].Partitions {
				if p.Leader < 0 {
					return false
				}
			}
			return true
		})
	}); err != nil {
		return err
	}
	total := int64(0)
	for p := range h.acked {
		there, err := h.read(ctx, int32(p))
		if err != nil {
			return err
		}
		acked := h.acked[p].Load()
		if there < acked {
			return fmt.Errorf("partition %d: %d records are there, %d were acknowledged", p, there, acked)
		}
		total += acked
		h.acked[p].Store(there) // one that nobody was told of may be there
	}
	harness.Progress("hungdisk: %d records were acknowledged, none is lost", total)
	return nil
}

// read gives how many records of the producer are in a partition.
func (h *hung) read(ctx context.Context, partition int32) (int64, error) {
	end, _, err := franz.New(h.node.Addr()).ListOffset(ctx, hungTopic, partition, -1)
	if err != nil {
		return 0, err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(h.node.Addr()), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{hungTopic: {partition: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	next := int64(0)
	for at := int64(0); at < end; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return 0, err
		}
		var wrong error
		fetches.EachRecord(func(r *kgo.Record) {
			at = r.Offset + 1
			switch text := string(r.Value); {
			case text == "probe":
			case text == strconv.FormatInt(next, 10):
				next++
			case wrong == nil:
				wrong = fmt.Errorf("partition %d: at offset %d there is %q, not %d", partition, r.Offset, text, next)
			}
		})
		if wrong != nil {
			return 0, wrong
		}
	}
	return next, nil
}
