package api

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// guard runs a part of a handler so that a fault in it costs the client its
// connection and not everyone the process. Callbacks, which run on others'
// goroutines, are guarded too.
//
// Panics are told apart by where they come from, not by what they say. One that
// passed through storage/ or controller/ may have left a lock held or a state half
// changed: that is a broken invariant and the process must not go on. Recovering
// it and marking the partition was the other choice, but nothing can say which
// partition, nor that only one was hit. What a client's bytes can reach before any
// lock is taken (decoding, and the validation of a batch) is recovered.
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
		c.request.CloseConnection(fmt.Errorf("the handler of %s failed: %v", c.request.Header.Key, reason))
	}()
	run()
}

// foreignBytes are functions that storage calls on a client's bytes while it holds
// no lock.
var foreignBytes = []string{
	"ottla/protocol/record.OneBatch", "ottla/protocol/record.Validate", "ottla/protocol/record.Recompress",
}

// brokenInvariant looks at the stack between the panic and guard; it is called by
// guard's deferred function.
func brokenInvariant() bool {
	pcs := make([]uintptr, 256)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	inside := false // storage or controller, and none of the exceptions nearer to the panic
	for {
		frame, more := frames.Next()
		name := frame.Function
		switch {
		case strings.HasPrefix(name, "ottla/cmd/ottla/internal/api.(*call).guard") && !strings.Contains(name, "guard.func"):
			return inside
		case isForeignBytes(name):
			return false
		case strings.HasPrefix(name, "ottla/storage/"), strings.HasPrefix(name, "ottla/controller/"):
			inside = true
		}
		if !more {
			return inside
		}
	}
}

func isForeignBytes(function string) bool {
	for _, name := range foreignBytes {
		if function == name {
			return true
		}
	}
	return false
}
