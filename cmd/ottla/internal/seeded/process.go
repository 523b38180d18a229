package seeded

import (
	"context"
	"log/slog"
	"strings"
)

// Death is what a disk panics with to end the process that calls it.
type Death struct{}

// DiesIn runs a call of a process and tells whether it has died in it, in the middle of what it did.
func DiesIn(run func()) (died bool) {
	defer func() {
		reason := recover()
		if _, died = reason.(Death); reason != nil && !died {
			panic(reason)
		}
	}()
	run()
	return false
}

// Logger writes what a node logs among what happens, for a reader: it does not count for the hash.
func (s *Scheduler) Logger() *slog.Logger {
	if s.lines == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(&noting{s})
}

type noting struct{ s *Scheduler }

func (n *noting) Enabled(context.Context, slog.Level) bool { return true }

func (n *noting) Handle(_ context.Context, r slog.Record) error {
	var text strings.Builder
	text.WriteString("    log " + r.Level.String() + ": " + r.Message)
	r.Attrs(func(a slog.Attr) bool {
		text.WriteString(" " + a.Key + "=" + a.Value.String())
		return true
	})
	n.s.Note(text.String())
	return nil
}

func (n *noting) WithAttrs([]slog.Attr) slog.Handler { return n }
func (n *noting) WithGroup(string) slog.Handler      { return n }
