package move

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

var (
	now = time.UnixMilli(1_700_000_000_000)
	tp  = protocol.TopicPartition{Topic: "t"}
)

// pair is a source and its successor on a disk in memory.
type pair struct {
	t      *testing.T
	random *rand.Rand
	disk   *vfs.Mem
	source *log.Log
	copy   *log.Log
	epoch  protocol.LeaderEpoch
}

func newPair(t *testing.T, seed uint64) *pair {
	p := &pair{t: t, random: rand.New(rand.NewPCG(seed, 1))}
	p.disk = vfs.NewMem(p.random.Uint64)
	env := log.Env{FS: p.disk, Files: segment.NewFileCache(p.disk, 50), Pool: compress.NewPool()}
	options := log.DefaultOptions()
	options.SegmentBytes = 600
	var err error
	p.source, err = log.Create(env, "/a/t-0", tp, protocol.TopicID{1}, options)
	p.must(err)
	p.copy, err = log.Create(env, "/b/t-0.x-future", tp, protocol.TopicID{1}, options)
	p.must(err)
	return p
}

func (p *pair) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *pair) append() {
	o := record.PlainOptions()
	o.ProducerID, o.ProducerEpoch, o.BaseSequence = protocol.ProducerID(p.random.IntN(3)), 0, 0
	o.Transactional = p.random.IntN(3) == 0
	b := record.NewBuilder(o)
	for range 1 + p.random.IntN(4) {
		b.Append(now.UnixMilli(), nil, fmt.Appendf(nil, "%d", p.random.Uint64()), nil)
	}
	p.must(p.source.Append(now, p.epoch, []*log.Entry{{Batch: b.Build(nil), Origin: log.OriginRaft}}))
}

// TestStepsFollow changes the source in every way between steps; in the end the successor is equal to it.
func TestStepsFollow(t *testing.T) {
	for seed := range uint64(60) {
		p := newPair(t, seed)
		for range 150 {
			view := p.source.View()
			switch at := view.LogStartOffset + protocol.Offset(p.random.IntN(int(view.LogEndOffset-view.LogStartOffset)+1)); p.random.IntN(12) {
			case 0, 1, 2, 3, 4:
				p.append()
			case 5:
				p.must(p.source.AdvanceLogStart(now, at))
				p.source.SetHighWatermark(p.source.View().LogEndOffset)
				p.must(p.source.Maintain(now).Err)
			case 6: // another leader cut off what was not replicated, and goes on in its own epoch
				p.must(p.source.TruncateTo(max(at, view.LogStartOffset)))
				p.epoch++
				p.must(p.source.AssignEpoch(p.epoch, p.source.View().LogEndOffset))
			default:
				before := p.copy.View()
				_, _, err := Step(now, p.source, p.copy, view.LogEndOffset, 1+p.random.IntN(500))
				if err != nil {
					t.Fatalf("seed %d: %v\nsource %+v %v\ncopy before %+v, after %+v %v", seed, err, view, p.source.Epochs(), before, p.copy.View(), p.copy.Epochs())
				}
			}
		}
		p.finish()
		if a, b := p.content(p.source), p.content(p.copy); !bytes.Equal(a, b) {
			t.Fatalf("seed %d: %d bytes, and %d in the copy", seed, len(a), len(b))
		}
		p.compare(seed)
	}
}

// TestDeletionUndone: a power cut takes deletions of the source back that the successor has followed, with a part of the end or not.
func TestDeletionUndone(t *testing.T) {
	for _, cut := range []protocol.Offset{0, 1, 8, 100} {
		p := newPair(t, 7)
		for range 12 {
			p.append()
		}
		p.finish()
		end := p.copy.View().LogEndOffset
		p.must(p.copy.AdvanceLogStart(now, end-4))
		p.copy.SetHighWatermark(end)
		p.must(p.copy.Maintain(now).Err)
		p.must(p.source.TruncateTo(max(0, end-cut)))
		p.finish()
		if a, b := p.content(p.source), p.content(p.copy); !bytes.Equal(a, b) {
			t.Errorf("%d offsets cut: %d bytes, and %d in the copy", cut, len(a), len(b))
		}
		p.compare(7)
	}
}

func (p *pair) finish() {
	for range 1000 {
		_, caughtUp, err := Step(now, p.source, p.copy, p.source.View().LogEndOffset, 200)
		p.must(err)
		if caughtUp {
			p.must(p.copy.TakeOver(now, p.source))
			return
		}
	}
	p.t.Fatal("it does not catch up")
}

func (p *pair) content(l *log.Log) (all []byte) {
	for from, end := l.View().LogStartOffset, l.View().LogEndOffset; from < end; {
		read, err := l.Read(from, 1<<20, end, true)
		p.must(err)
		part, err := read.Region.ReadAll()
		p.must(err)
		read.Region.Release()
		if all, from = append(all, part...), read.NextOffset; len(part) == 0 {
			break
		}
	}
	return all
}

func (p *pair) compare(seed uint64) {
	a, b := p.source.View(), p.copy.View()
	if a.LogStartOffset != b.LogStartOffset || a.LogEndOffset != b.LogEndOffset || a.FirstUnstableOffset != b.FirstUnstableOffset || a.LatestEpoch != b.LatestEpoch {
		p.t.Errorf("seed %d: %+v, and the copy %+v", seed, a, b)
	}
	if b.DurableEnd != b.LogEndOffset {
		p.t.Errorf("seed %d: the copy is durable up to %d of %d", seed, b.DurableEnd, b.LogEndOffset)
	}
	if x, y := fmt.Sprint(p.source.ActiveProducers()), fmt.Sprint(p.copy.ActiveProducers()); x != y {
		p.t.Errorf("seed %d: producers %s, and in the copy %s", seed, x, y)
	}
	if x, y := fmt.Sprint(p.source.Epochs()), fmt.Sprint(p.copy.Epochs()); x != y {
		p.t.Errorf("seed %d: epochs %s, and in the copy %s", seed, x, y)
	}
}

// TestNothingLeftAtTheEnd: compaction has left nothing of the newest offsets, or of all.
func TestNothingLeftAtTheEnd(t *testing.T) {
	for batches := range 3 {
		p := newPair(t, 7)
		for range batches {
			p.append()
		}
		p.must(p.source.SkipTo(now, 1000))
		p.finish()
		if a, b := p.content(p.source), p.content(p.copy); !bytes.Equal(a, b) {
			t.Errorf("%d bytes, and %d in the copy", len(a), len(b))
		}
		p.compare(7)
		p.append()
		p.finish()
		p.compare(7)
	}
}

// TestDamageIsNotCopied: a batch whose checksum is wrong ends the copying with an error of the source.
func TestDamageIsNotCopied(t *testing.T) {
	p := newPair(t, 1)
	p.append()
	p.append()
	file, err := p.disk.OpenFile("/a/t-0/00000000000000000000.log", 2)
	p.must(err)
	_, err = file.WriteAt([]byte{0xff, 0xfe}, 70)
	p.must(err)
	_, _, err = Step(now, p.source, p.copy, 0, 1<<20)
	var ofSource *SourceError
	if !errors.As(err, &ofSource) || p.copy.View().LogEndOffset != 0 {
		t.Errorf("%v, and the copy ends at %d", err, p.copy.View().LogEndOffset)
	}
}
