package store

import (
	"fmt"
	"path"
	"slices"

	"ottla/protocol"
	"ottla/storage/checkpoint"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// setDuplicatesAside takes partitions offline that lie in two directories: which one is right nobody knows. Where
// one of the two is of a former topic of the name, that was deleted and made anew while its directory was offline, it is
// set aside; where one never held a record it is what a Create has left in a directory that failed, and it is removed.
func (s *Store) setDuplicatesAside(lists []*found) {
	first := map[protocol.TopicPartition]int{}
	for i, f := range lists {
		for _, tp := range slices.Clone(f.partitions) {
			j, twice := first[tp]
			former := -1
			if twice {
				former = s.former(tp, i, j)
			}
			switch {
			case !twice:
				first[tp] = i
			case former >= 0 && s.setFormerAside(former, tp, lists[former]):
				first[tp] = i + j - former
			case s.neverUsed(s.dirs[i], tp):
				f.leftover(tp)
			case s.neverUsed(s.dirs[j], tp):
				lists[j].leftover(tp)
				first[tp] = i
			default:
				s.isTwice(tp, i, j, lists)
			}
		}
	}
}

// drop takes a partition out of those to be opened.
func (f *found) drop(tp protocol.TopicPartition) {
	f.partitions = slices.DeleteFunc(f.partitions, func(other protocol.TopicPartition) bool { return other == tp })
}

// leftover moves a partition to what is removed.
func (f *found) leftover(tp protocol.TopicPartition) {
	f.drop(tp)
	f.deleted = append(f.deleted, tp.String())
}

// neverUsed tells that a partition's directory holds no record and never has: no segment but an empty first one.
func (s *Store) neverUsed(d *directory, tp protocol.TopicPartition) bool {
	entries, err := s.o.FS.ReadDir(path.Join(d.Path, tp.String()))
	for _, e := range entries {
		if path.Ext(e.Name) == ".log" && (e.Size > 0 || e.Name != segment.FileName(0, segment.LogSuffix)) {
			return false
		}
	}
	return err == nil
}

func (s *Store) isTwice(tp protocol.TopicPartition, i, j int, lists []*found) {
	err := fmt.Errorf("%s is both in %s and in %s", tp, s.dirs[j].Path, s.dirs[i].Path)
	s.mu.Lock()
	s.failed[tp] = failure{dir: s.dirs[j], err: err, everywhere: true}
	s.dirs[i].distrusted, s.dirs[j].distrusted = true, true
	s.mu.Unlock()
	s.o.Logger.Error("a partition is offline", "partition", tp, "reason", err)
	for _, f := range []*found{lists[i], lists[j]} {
		f.drop(tp)
		f.collector.damaged(tp, err)
	}
}

// former tells which of the two directories that a partition lies in has it of a former topic, by the topic ids; -1: that is
// not known of either.
func (s *Store) former(tp protocol.TopicPartition, i, j int) int {
	if s.o.TopicID == nil {
		return -1
	}
	is, one, other := s.o.TopicID(tp.Topic), s.topicIDIn(s.dirs[i], tp), s.topicIDIn(s.dirs[j], tp)
	switch {
	case is.IsZero() || one.IsZero() || other.IsZero() || one == other:
		return -1
	case one == is:
		return j
	case other == is:
		return i
	}
	return -1
}

// topicIDIn reads partition.metadata of a partition; zero if that cannot be.
func (s *Store) topicIDIn(d *directory, tp protocol.TopicPartition) protocol.TopicID {
	data, err := vfs.ReadFile(s.o.FS, path.Join(d.Path, tp.String(), log.MetadataFile))
	if err != nil {
		return protocol.TopicID{}
	}
	id, err := checkpoint.ParseTopicID(data)
	if err != nil {
		return protocol.TopicID{}
	}
	return id
}

// setFormerAside renames a partition's directory as that of a stray one, and tells whether that is durable.
func (s *Store) setFormerAside(i int, tp protocol.TopicPartition, f *found) bool {
	name := logdir.AwayName(tp, s.o.Random, "-stray")
	dir := s.dirs[i]
	err := s.o.FS.Rename(path.Join(dir.Path, tp.String()), path.Join(dir.Path, name))
	if err == nil {
		err = s.o.FS.SyncDir(dir.Path)
	}
	if err != nil {
		s.o.Logger.Error("a partition of a former topic cannot be set aside", "partition", tp, "directory", dir.Path, "error", err)
		return false
	}
	s.o.Logger.Warn("a partition of a former topic is set aside", "partition", tp, "directory", path.Join(dir.Path, name))
	f.drop(tp)
	f.collector.report.Aside = append(f.collector.report.Aside, name)
	return true
}
