package store

import (
	"slices"
	"sync"

	"ottla/protocol"
	"ottla/storage/log"
)

// Report says what a start found and did.
type Report struct {
	Directories []DirectoryReport
}

// DirectoryReport is the part of one log directory.
type DirectoryReport struct {
	Directory
	Trust       log.Trust
	Logs        int
	Repaired    []PartitionReport // logs that needed repair
	Damaged     []PartitionReport // partitions that are offline
	Removed     []string          // directories that ended in -delete
	Promoted    []string          // -future directories that took the place of their partitions
	Aside       []string          // -stray directories, which are left alone
	Unknown     []string          // other directories that are no partitions, left alone
	Checkpoints []string          // checkpoint files that were damaged and are taken as empty
}

// PartitionReport is one partition that a start has something to say of.
type PartitionReport struct {
	Partition protocol.TopicPartition
	Recovery  log.Recovery
	Err       error
}

// collector gathers a DirectoryReport from several workers.
type collector struct {
	mu     sync.Mutex
	report DirectoryReport
}

func (c *collector) opened(tp protocol.TopicPartition, recovery log.Recovery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Logs++
	if recovery.NoteWorthy() {
		c.report.Repaired = append(c.report.Repaired, PartitionReport{Partition: tp, Recovery: recovery})
	}
}

func (c *collector) damaged(tp protocol.TopicPartition, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Damaged = append(c.report.Damaged, PartitionReport{Partition: tp, Err: err})
}

func (c *collector) removed(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Removed = append(c.report.Removed, name)
}

func (c *collector) promoted(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Promoted = append(c.report.Promoted, name)
}

// finish sorts what came in the order of the workers.
func (c *collector) finish(d Directory) DirectoryReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	byName := func(a, b PartitionReport) int { return a.Partition.Compare(b.Partition) }
	slices.SortFunc(c.report.Repaired, byName)
	slices.SortFunc(c.report.Damaged, byName)
	c.report.Directory = d
	return c.report
}
