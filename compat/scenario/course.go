package scenario

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"ottla/compat/harness"
)

// StepLimit is how long each client of a row may take for one step; RestartLimit ends the whole row. A client that hangs fails alone, in
// its step, and the others are judged.
const (
	StepLimit    = 3 * time.Minute
	RestartLimit = 5 * StepLimit
)

// runner is one client's part in a row.
type runner interface {
	name() string
	// told is what is known of a client that has failed: what it did, and what the server says of it.
	told() string
	// drop ends what is under way.
	drop()
}

// course takes the clients of a row through its steps, side by side.
type course[R runner] struct {
	on      Restarting
	runners []R
	failed  []error
}

func newCourse[R runner](on Restarting, runners []R) *course[R] {
	return &course[R]{on, runners, make([]error, len(runners))}
}

// each takes the next step with every client that has not failed yet.
func (c *course[R]) each(what string, step func(context.Context, R) error) {
	var all sync.WaitGroup
	for i, r := range c.runners {
		if c.failed[i] != nil {
			continue
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(c.on.Ctx, StepLimit)
			defer cancel()
			if err := step(ctx, r); err != nil {
				c.failed[i] = fmt.Errorf("%s: %w\n%s", what, err, r.told())
				harness.Progress("%s: %v", r.name(), c.failed[i])
				r.drop()
			}
		})
	}
	all.Wait()
}

// results tells what became of each client; done is what it has done.
func (c *course[R]) results(row string, done func(R) string) {
	for i, r := range c.runners {
		if c.failed[i] != nil {
			c.on.Errorf("%s with %s: %v", row, r.name(), c.failed[i])
		}
		c.on.Result(r.name(), c.failed[i])
		line := "no error"
		if c.failed[i] != nil {
			line, _, _ = strings.Cut(c.failed[i].Error(), "\n")
		}
		harness.Progress("%s with %s: %s; %s", row, r.name(), done(r), line)
	}
}

// restart ends the node in the row's way and starts it again; between is called when it is down.
func (r Restart) restart(on Restarting, between func()) {
	if err := r.end(on.Node); err != nil {
		on.Fatal(err)
	}
	between()
	if _, err := on.Node.Start(on.Ctx); err != nil {
		on.Fatal(err)
	}
}

// within waits for the result of something that may hang.
func within(ctx context.Context, what string, done <-chan error) error {
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s does not end: %w", what, ctx.Err())
	}
}
