package sim

import (
	"context"
	"log/slog"
	"strings"
)

// traceHandler writes what a node logs into the trace. It is used only where
// somebody reads the trace, and does not count for the hash.
type traceHandler struct{ s *Simulation }

func (h *traceHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *traceHandler) Handle(_ context.Context, r slog.Record) error {
	var text strings.Builder
	text.WriteString("    log " + r.Level.String() + ": " + r.Message)
	r.Attrs(func(a slog.Attr) bool {
		text.WriteString(" " + a.Key + "=" + a.Value.String())
		return true
	})
	h.s.Note(text.String())
	return nil
}

func (h *traceHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h *traceHandler) WithGroup(string) slog.Handler      { return h }
