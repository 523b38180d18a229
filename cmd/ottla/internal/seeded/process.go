package seeded

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"ottla/storage/vfs"
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

// Doom is a process that is to die in the middle of what it does.
type Doom struct {
	In         int           // changes of the disk until it dies; 0: it does not
	LosesPower bool          // and so does the machine
	Back       time.Duration // until another one boots
	Left       *vfs.Mem      // the disk as it then was
}

// Operation is called before each operation on the disk. dying is told before the last one, which is not done.
func (d *Doom) Operation(disk *vfs.Mem, op vfs.Operation, dying func()) {
	if d.In == 0 || !op.Kind.Changes() {
		return
	}
	if d.In--; d.In > 0 {
		return
	}
	dying()
	d.Left = disk.Kill()
	if d.LosesPower {
		d.Left = disk.Crash()
	}
	panic(Death{})
}

// Workers do the tasks that a process gives them: each some time later, or at once.
type Workers struct {
	Inline bool // at once: while starting and stopping
	tasks  []*task
}

type task struct{ run func() }

// Give takes a task. later is to have it done in the process, after a delay.
func (w *Workers) Give(run func(), later func(do func())) {
	if w.Inline {
		run()
		return
	}
	t := &task{run}
	w.tasks = append(w.tasks, t)
	later(func() { w.do(t) })
}

// Next does the oldest task that waits; nil: none does.
func (w *Workers) Next() (do func()) {
	if len(w.tasks) == 0 {
		return nil
	}
	return func() { w.do(w.tasks[0]) }
}

// do does a task, unless that was done.
func (w *Workers) do(t *task) {
	if at := slices.Index(w.tasks, t); at >= 0 {
		w.tasks = slices.Delete(w.tasks, at, at+1)
		t.run()
	}
}
