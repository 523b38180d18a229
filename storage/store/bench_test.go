package store

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/vfs"
)

// BenchmarkStartAfterKill opens logs of 1 MB whose process died, the last fifth not covered by an index entry or a snapshot of the
// producers: a whole start, of so many logs.
func BenchmarkStartAfterKill(b *testing.B) {
	const logs, batches, covered = 500, 64, 52
	var side sync.WaitGroup
	for b.Loop() {
		b.StopTimer()
		dir := b.TempDir()
		if err := logdir.WriteMetaProperties(vfs.OS(), dir, logdir.MetaProperties{ClusterID: clusterID, NodeID: 1, DirectoryID: directoryID(0)}); err != nil {
			b.Fatal(err)
		}
		o := options(nil, dir)
		o.FS, o.LogOptions, o.Workers = vfs.OS(), nil, func(task func()) { side.Go(task) }
		s, _, err := Open(start, o)
		if err != nil {
			b.Fatal(err)
		}
		for i := range int32(logs) {
			l, err := s.Create(tp("many", i), topicID("many"), protocol.DirectoryID{})
			if err != nil {
				b.Fatal(err)
			}
			for n := range batches {
				plain := record.PlainOptions()
				plain.ProducerID, plain.ProducerEpoch, plain.BaseSequence = protocol.ProducerID(i), 0, int32(16*n)
				builder := record.NewBuilder(plain)
				for range 16 {
					builder.Append(start.UnixMilli(), nil, make([]byte, 1000), nil)
				}
				batch := builder.Build(nil)
				if err := l.Append(start, 0, []*log.Entry{{Batch: batch}}); err != nil {
					b.Fatal(err)
				}
				if n == covered {
					if m := l.Maintain(start); m.Err != nil {
						b.Fatal(m.Err)
					}
				}
			}
		}
		_ = s.Close(start, false, logdir.NoBrokerEpoch)
		b.StartTimer()
		s, _, err = Open(start, o)
		if err != nil {
			b.Fatal(err)
		}
		side.Wait()
		b.StopTimer()
		if got := len(s.Logs()); got != logs {
			b.Fatal(got)
		}
		if v := s.Logs()[0].View(); v.LogEndOffset != 16*batches {
			b.Fatal(fmt.Sprint(v))
		}
		_ = s.Close(start, false, logdir.NoBrokerEpoch)
		_ = os.RemoveAll(dir)
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*logs), "us/log")
}
