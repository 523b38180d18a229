package store

import (
	"slices"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/logdir"
)

// readFailed reads which directories have failed without a trace of their own. They are trusted no further than after a
// power cut, though they may have been mounted anew under the same boot.
func (p *Prepared) readFailed() {
	for _, d := range p.all {
		if d.Offline != nil {
			continue
		}
		ids, err := logdir.ReadFailed(p.o.FS, d.Path)
		if err != nil {
			p.fail(d, err)
		}
		d.remembers = ids
	}
	for _, d := range p.all {
		for _, other := range p.all {
			if d.trust == log.SameBoot && slices.Contains(other.remembers, d.ID) {
				d.trust = log.OtherBoot
			}
		}
	}
}

// remember has the other directories say, or not say any more, that a directory failed.
func (s *Store) remember(id protocol.DirectoryID, failed bool) {
	s.remembering.Lock()
	defer s.remembering.Unlock()
	for _, d := range s.all {
		if s.describe(d).Offline != nil || d.ID == id || id.IsZero() || slices.Contains(d.remembers, id) == failed {
			continue
		}
		ids := slices.DeleteFunc(slices.Clone(d.remembers), func(other protocol.DirectoryID) bool { return other == id })
		if failed {
			ids = append(ids, id)
		}
		if err := logdir.WriteFailed(s.o.FS, d.Path, ids); err != nil {
			s.o.Logger.Warn("it cannot be noted which directories failed", "directory", d.Path, "error", err)
			continue
		}
		d.remembers = ids
	}
}
