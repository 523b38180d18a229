package seeded

import "time"

// Pump ticks one part of a node as the node's own loop does: when its deadline comes, or when it is woken. A deadline that
// comes nearer without a wake is missed here as there.
type Pump struct {
	Name     string
	Tick     func(now time.Time)
	Deadline func(now time.Time) time.Time // zero: never
	Woken    <-chan struct{}

	Process Process
	Random  *Random

	timer   int // the number of the last one set; earlier ones do nothing
	second  int64
	inOne   int // ticks in this second
	pending bool
}

// Process is what a Pump works in.
type Process interface {
	// Present is the time, and whether parts are ticked (any more).
	Present() (now time.Time, ticked bool)
	// Later schedules something of the process, which is dropped if that has ended by then.
	Later(delay time.Duration, what string, run func())
	// Within runs a call of the node; false: the process has ended in it.
	Within(run func()) bool
	// TooOften is told of a part whose deadline does not go away.
	TooOften(part string, inOneSecond int)
}

const (
	tickPause = time.Millisecond // as in the node's loop
	mostTicks = 700              // more than any part needs in a second: the pause allows 1,000
)

// Look takes a wake.
func (p *Pump) Look() {
	select {
	case <-p.Woken:
		if !p.pending {
			p.pending = true
			p.Process.Later(p.Random.Between(0, 100*time.Microsecond), p.Name+" is woken", func() {
				p.pending = false
				p.turn()
			})
		}
	default:
	}
}

// Schedule sets the timer.
func (p *Pump) Schedule(delay time.Duration) {
	p.timer++
	timer := p.timer
	p.Process.Later(delay, p.Name+" is due", func() {
		if p.timer == timer {
			p.turn()
		}
	})
}

// turn is one round of the node's loop.
func (p *Pump) turn() {
	now, ticked := p.Process.Present()
	if !ticked {
		return
	}
	deadline := p.Deadline(now)
	if !deadline.IsZero() && !deadline.After(now) {
		p.counted(now)
		if !p.Process.Within(func() { p.Tick(now) }) {
			return
		}
		deadline = p.Deadline(now)
	}
	p.timer++ // whatever was set does not count any more
	if !deadline.IsZero() {
		p.Schedule(max(deadline.Sub(now), tickPause) + p.Random.Between(0, 50*time.Microsecond))
	}
}

func (p *Pump) counted(now time.Time) {
	if p.second != now.Unix() {
		p.second, p.inOne = now.Unix(), 0
	}
	if p.inOne++; p.inOne > mostTicks {
		p.Process.TooOften(p.Name, p.inOne)
	}
}
