package api

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// guard runs a part of a handler so that a fault in it costs the client its
// connection and not everyone the process. Callbacks, which run on others'
// goroutines, are guarded too.
//
// Panics are told apart by where they come from, not by what they say. One that
// passed through a package that holds state (storage/, and controller/ but for the
// immutable parts of it) may have left a lock held or a state half changed: that is
// a broken invariant and the process must not go on. Recovering it and marking the
// partition was the other choice, but nothing can say which partition, nor that
// only one was hit. What a client's bytes can reach before any lock is taken
// (decoding, and the validation of a batch) is recovered.
func (c *call) guard(run func()) {
	defer func() {
		reason := recover()
		if reason == nil {
			return
		}
		if brokenInvariant() {
			panic(reason)
		}
		c.Logger.Error("a handler failed", "api", c.request.Header.Key, "version", c.version,
			"listener", c.listener(), "peer", c.request.Conn.RemoteAddr(), "reason", fmt.Sprint(reason), "stack", string(debug.Stack()))
		if !c.answered.Load() {
			c.close(fmt.Errorf("the handler of %s failed: %v", c.request.Header.Key, reason))
		}
	}()
	run()
}

// stateless are functions below storage and controller that may fail without harm:
// packages of immutable values, and what storage calls on a client's bytes while it
// holds no lock.
var stateless = []string{
	"ottla/controller/metadata.", "ottla/controller/config.", "ottla/controller/acl.",
	"ottla/protocol/record.OneBatch", "ottla/protocol/record.Validate", "ottla/protocol/record.Recompress",
}

// brokenInvariant looks at the stack between the panic and the nearest guard, from
// the panic outwards; guard's deferred function calls it.
func brokenInvariant() bool {
	pcs := make([]uintptr, 512)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		switch name := frame.Function; {
		case strings.HasSuffix(name, "internal/api.(*call).guard"), hasPrefix(name, stateless):
			return false
		case strings.HasPrefix(name, "ottla/storage/"), strings.HasPrefix(name, "ottla/controller/"):
			return true
		}
		if !more {
			return true // a stack too deep to tell
		}
	}
}

func hasPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
