package driver

import (
	"context"
	"fmt"
)

// ToolResult is what one run of a command-line tool left.
type ToolResult struct {
	Exit   int    `json:"exit"`
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

// String is the result for a failure message.
func (r ToolResult) String() string {
	return fmt.Sprintf("exit %d\nstdout:\n%s\nstderr:\n%s", r.Exit, shorten(r.Stdout), shorten(r.Stderr))
}

func shorten(text string) string {
	if len(text) > 4000 {
		return text[:2000] + "\n…\n" + text[len(text)-2000:]
	}
	return text
}

// Tool runs a tool of Apache Kafka by its main class (without the package org.apache.kafka.tools) inside the JVM.
func (p *Process) Tool(ctx context.Context, class, stdin string, args ...string) (ToolResult, error) {
	var r ToolResult
	err := p.call(ctx, "tool", map[string]any{"class": "org.apache.kafka.tools." + class, "args": args, "stdin": stdin}, &r, nil, nil)
	return r, err
}
