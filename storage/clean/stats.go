package clean

import (
	"cmp"
	"path"
	"slices"
	"time"
)

// result is what is known of the last round of a lane.
type result struct {
	stats RoundStats
	took  time.Duration
}

// seen is what the last choice saw.
type seen struct {
	at       time.Time
	dirtiest float64
	delay    time.Duration
}

func (s *seen) count(c *candidate) {
	s.delay = max(s.delay, c.delay)
	if c.totalBytes > 0 {
		s.dirtiest = max(s.dirtiest, c.ratio())
	}
}

// Stats are counters and gauges of a Cleaner; Apache Kafka's metric is named beside each that has one.
type Stats struct {
	Rounds       int64
	Failures     int64
	BytesMapped  int64
	BytesRead    int64
	BytesWritten int64
	RecordsRead  int64
	RecordsKept  int64

	// Of kafka.log:type=LogCleaner. A lane is a thread.
	RecopyPercent               int // cleaner-recopy-percent: written of what was read, in the last round of each lane
	MaxBufferUtilizationPercent int // max-buffer-utilization-percent
	MaxCleanTimeSecs            int // max-clean-time-secs
	MaxCompactionDelaySecs      int // max-compaction-delay-secs
	DeadThreadCount             int // DeadThreadCount: a step that fails ends no lane, so it is 0

	// Of kafka.log:type=LogCleanerManager.
	MaxDirtyPercent    int // max-dirty-percent
	TimeSinceLastRunMs int64
	// Uncleanable lists the log directories with logs that failed and wait: uncleanable-partitions-count and uncleanable-bytes.
	Uncleanable []Uncleanable
}

// Uncleanable is what of one log directory cannot be compacted at present.
type Uncleanable struct {
	Directory  string
	Partitions int
	Bytes      int64
}

func (s *Stats) add(r *RoundStats) {
	s.Rounds++
	s.BytesMapped += r.BytesMapped
	s.BytesRead += r.BytesRead
	s.BytesWritten += r.BytesWritten
	s.RecordsRead += r.RecordsRead
	s.RecordsKept += r.RecordsKept
}

// Stats gives the present ones.
func (c *Cleaner) Stats(now time.Time) Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	var read, written int64
	for _, l := range c.lanes {
		read, written = read+l.last.stats.BytesRead, written+l.last.stats.BytesWritten
		s.MaxBufferUtilizationPercent = max(s.MaxBufferUtilizationPercent, int(100*l.last.stats.Utilization))
		s.MaxCleanTimeSecs = max(s.MaxCleanTimeSecs, int(l.last.took/time.Second))
	}
	s.RecopyPercent = int(100 * written / max(read, 1))
	s.MaxCompactionDelaySecs = int(c.seen.delay / time.Second)
	s.MaxDirtyPercent = int(100 * c.seen.dirtiest)
	if !c.seen.at.IsZero() {
		s.TimeSinceLastRunMs = max(now.Sub(c.seen.at).Milliseconds(), 0)
	}
	s.Uncleanable = c.uncleanable()
	return s
}

func (c *Cleaner) uncleanable() []Uncleanable {
	var list []Uncleanable
	for _, f := range c.failing {
		dir := path.Dir(f.dir)
		at := slices.IndexFunc(list, func(u Uncleanable) bool { return u.Directory == dir })
		if at < 0 {
			at = len(list)
			list = append(list, Uncleanable{Directory: dir})
		}
		list[at].Partitions++
		list[at].Bytes += f.bytes
	}
	slices.SortFunc(list, func(a, b Uncleanable) int { return cmp.Compare(a.Directory, b.Directory) })
	return list
}
