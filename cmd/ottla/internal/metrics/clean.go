package metrics

import "ottla/storage/clean"

var (
	cleanerRecopy      = gauge("kafka_log_logcleaner_cleaner_recopy_percent", "What compaction wrote of what it read, in the last round of each thread.")
	cleanerUtilization = gauge("kafka_log_logcleaner_max_buffer_utilization_percent", "How full the memory for keys was in the last round of the thread that needed most.")
	cleanerTime        = gauge("kafka_log_logcleaner_max_clean_time_secs", "How long the last round of the slowest thread took.")
	cleanerDelay       = gauge("kafka_log_logcleaner_max_compaction_delay_secs", "For how long max.compaction.lag.ms of the partition that waits longest is over.")
	cleanerDead        = gauge("kafka_log_logcleaner_deadthreadcount", "Always 0: what fails is tried again.")
	cleanerDirtiest    = gauge("kafka_log_logcleanermanager_max_dirty_percent", "How much of the dirtiest partition was not compacted, at the last look.")
	cleanerLastRun     = gauge("kafka_log_logcleanermanager_time_since_last_run_ms", "When it was last looked what there is to compact.")
	uncleanable        = gauge("kafka_log_logcleanermanager_uncleanable_partitions_count", "Partitions that could not be compacted, and are tried again later.", "logdirectory")
	uncleanableBytes   = gauge("kafka_log_logcleanermanager_uncleanable_bytes", "What of them waits to be compacted.", "logdirectory")

	cleanerRounds  = counter("ottla_log_cleaner_rounds_total", "Compactions of a partition.")
	cleanerFailed  = counter("ottla_log_cleaner_failures_total", "Compactions that failed.")
	cleanerRead    = counter("ottla_log_cleaner_read_bytes_total", "Bytes of segments that were rewritten.")
	cleanerWritten = counter("ottla_log_cleaner_written_bytes_total", "Bytes that were left of them.")
)

// collectCleaner tells what compaction does.
func (c *Collector) collectCleaner(p page) {
	if c.source.Cleaner == nil {
		return
	}
	s := c.source.Cleaner(c.source.Now())
	p.put(cleanerRecopy, float64(s.RecopyPercent))
	p.put(cleanerUtilization, float64(s.MaxBufferUtilizationPercent))
	p.put(cleanerTime, float64(s.MaxCleanTimeSecs))
	p.put(cleanerDelay, float64(s.MaxCompactionDelaySecs))
	p.put(cleanerDead, float64(s.DeadThreadCount))
	p.put(cleanerDirtiest, float64(s.MaxDirtyPercent))
	p.put(cleanerLastRun, float64(s.TimeSinceLastRunMs))
	p.put(cleanerRounds, float64(s.Rounds))
	p.put(cleanerFailed, float64(s.Failures))
	p.put(cleanerRead, float64(s.BytesRead))
	p.put(cleanerWritten, float64(s.BytesWritten))
	for _, directory := range c.source.Store.Directories() {
		var waiting clean.Uncleanable
		for _, u := range s.Uncleanable {
			if u.Directory == directory.Path {
				waiting = u
			}
		}
		p.put(uncleanable, float64(waiting.Partitions), directory.Path)
		p.put(uncleanableBytes, float64(waiting.Bytes), directory.Path)
	}
}
