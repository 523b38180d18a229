package clean

import (
	"strings"
	"testing"
	"time"

	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/log"
)

// roll makes everything before it sealed: the next batch is the first of a segment.
func roll(t testing.TB, l *log.Log) {
	t.Helper()
	o := l.Options()
	tight := o
	tight.SegmentAge = time.Millisecond
	l.SetOptions(tight)
	add(t, l, batch(compress.None, from{}, testTime.Add(time.Hour), rec{"zz", "end"}))
	l.SetOptions(o)
}

func TestWhatStays(t *testing.T) {
	day := 24 * time.Hour
	p := from{id: 7, transactional: true}
	for _, test := range []struct {
		name    string
		batches []record.Batch
		passes  []time.Duration // since testTime
		want    []string
	}{
		{"the latest value of a key", []record.Batch{
			batch(compress.None, from{}, testTime, rec{"a", "1"}, rec{"b", "1"}, rec{"a", "2"}),
			batch(compress.Zstd, from{}, testTime, rec{"a", "3"}, rec{"c", "1"}),
		}, []time.Duration{0}, []string{"0-2 1:b=1", "3-4 3:a=3 4:c=1", "5-5 5:zz=end"}},
		{"nothing of a batch", []record.Batch{
			batch(compress.None, from{}, testTime, rec{"a", "1"}),
			batch(compress.None, from{}, testTime, rec{"a", "2"}),
		}, []time.Duration{0}, []string{"1-1 1:a=2", "2-2 2:zz=end"}},
		{"a tombstone, until its horizon", []record.Batch{
			batch(compress.None, from{}, testTime, rec{"a", "1"}, rec{"b", "1"}),
			batch(compress.LZ4, from{}, testTime, rec{"a", ""}, rec{"c", "1"}),
		}, []time.Duration{0}, []string{"0-1 1:b=1", "2-3 horizon+86400s 2:a- 3:c=1", "4-4 4:zz=end"}},
		{"the horizon stands", []record.Batch{
			batch(compress.Gzip, from{}, testTime, rec{"a", ""}, rec{"c", "1"}),
		}, []time.Duration{0, day - 1}, []string{"0-1 horizon+86400s 0:a- 1:c=1", "2-2 2:zz=end"}},
		{"a tombstone goes", []record.Batch{
			batch(compress.Snappy, from{}, testTime, rec{"a", ""}, rec{"c", "1"}),
		}, []time.Duration{0, day}, []string{"0-1 horizon+86400s 1:c=1", "2-2 2:zz=end"}},
		{"records without a key go", []record.Batch{
			batch(compress.None, from{}, testTime, rec{"", "1"}, rec{"a", "1"}),
		}, []time.Duration{0}, []string{"0-1 1:a=1", "2-2 2:zz=end"}},
		{"aborted records go, their marker waits", []record.Batch{
			batch(compress.None, from{}, testTime, rec{"a", "1"}),
			batch(compress.None, p, testTime, rec{"a", "2"}),
			marker(7, 0, false, testTime),
			batch(compress.None, from{id: 7, sequence: 1, transactional: true}, testTime, rec{"b", "1"}),
			marker(7, 0, true, testTime),
		}, []time.Duration{0}, []string{"0-0 0:a=1", "2-2 control ABORT", "3-3 3:b=1", "4-4 control COMMIT", "5-5 5:zz=end"}},
		{"a marker without batches gets a horizon", []record.Batch{
			batch(compress.None, p, testTime, rec{"a", "2"}),
			marker(7, 0, false, testTime),
			batch(compress.None, from{id: 7, sequence: 1, transactional: true}, testTime, rec{"b", "1"}),
			marker(7, 0, true, testTime),
		}, []time.Duration{0, 1}, []string{"1-1 control horizon+86400s ABORT", "2-2 2:b=1", "3-3 control COMMIT", "4-4 4:zz=end"}},
		{"and goes with it", []record.Batch{
			batch(compress.None, p, testTime, rec{"a", "2"}),
			marker(7, 0, false, testTime),
			batch(compress.None, from{id: 7, sequence: 1, transactional: true}, testTime, rec{"b", "1"}),
			marker(7, 0, true, testTime),
		}, []time.Duration{0, 1, day + 1}, []string{"2-2 2:b=1", "3-3 control COMMIT", "4-4 4:zz=end"}},
		{"the last batch of a producer stays, empty", []record.Batch{
			batch(compress.Zstd, from{id: 5}, testTime, rec{"a", "1"}),
			batch(compress.None, from{}, testTime, rec{"a", "2"}),
		}, []time.Duration{0}, []string{"0-0", "1-1 1:a=2", "2-2 2:zz=end"}},
		{"an empty batch of an aborted transaction keeps the marker", []record.Batch{
			batch(compress.None, p, testTime, rec{"a", "2"}),
			marker(7, 0, false, testTime),
		}, []time.Duration{0, day / 2, day - 1}, []string{"0-0", "1-1 control ABORT", "2-2 2:zz=end"}},
		{"what is undecided stays", []record.Batch{
			batch(compress.None, from{}, testTime, rec{"a", "1"}),
			batch(compress.None, p, testTime, rec{"a", "2"}),
			batch(compress.None, from{}, testTime, rec{"a", "3"}),
		}, []time.Duration{0}, []string{"0-0 0:a=1", "1-1 1:a=2", "2-2 2:a=3", "3-3 3:zz=end"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			disk := newDisk(1)
			l := newLog(t, disk, testOptions())
			add(t, l, test.batches...)
			roll(t, l)
			for _, pass := range test.passes {
				compact(t, l, 0, testTime.Add(pass))
			}
			if got := strings.Join(lines(t, l), "\n"); got != strings.Join(test.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", got, strings.Join(test.want, "\n"))
			}
		})
	}
}
