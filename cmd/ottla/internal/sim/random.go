package sim

import "time"

// random is splitmix64: small, and the same on every machine and Go version.
type random struct{ state uint64 }

func newRandom(seed uint64) *random { return &random{state: seed*0x9e3779b97f4a7c15 + 0x1234567} }

func (r *random) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// fork gives a stream of its own, so that one more choice here changes none there.
func (r *random) fork() *random { return &random{state: r.next()} }

// below gives 0 to n-1.
func (r *random) below(n int) int { return int(r.next() % uint64(n)) }

// chance is true so many times in a thousand.
func (r *random) chance(perMille int) bool { return r.below(1000) < perMille }

func (r *random) between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(r.next()%uint64(high-low))
}

// pick gives one of the values.
func pick[T any](r *random, values ...T) T { return values[r.below(len(values))] }

// shuffle puts values in a random order.
func shuffle[T any](r *random, values []T) {
	for i := len(values) - 1; i > 0; i-- {
		j := r.below(i + 1)
		values[i], values[j] = values[j], values[i]
	}
}
