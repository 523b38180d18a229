package vfs

import "sync"

// Shared is one sync for all who ask while another runs: each is answered by one that began after he asked. The zero
// value is ready.
type Shared struct {
	running sync.Mutex // taken before mu

	mu     sync.Mutex
	asked  uint64 // tickets given
	done   uint64 // tickets answered
	failed uint64 // the last one that was answered by an error
	err    error  // that
}

// Do returns when sync has run once since the call, and its error. What fails is not tried again for those who waited.
func (s *Shared) Do(sync func() error) error {
	s.mu.Lock()
	s.asked++
	mine := s.asked
	s.mu.Unlock()
	s.running.Lock()
	defer s.running.Unlock()
	s.mu.Lock()
	upTo, answered, err := s.asked, s.done >= mine, s.err
	if mine > s.failed {
		err = nil
	}
	s.mu.Unlock()
	if answered {
		return err
	}
	err = sync()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = upTo
	if err != nil {
		s.failed, s.err = upTo, err
	}
	return err
}
