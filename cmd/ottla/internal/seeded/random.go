package seeded

import "time"

// Random is splitmix64: small, and the same on every machine and Go version.
type Random struct{ state uint64 }

// NewRandom makes the stream of a seed; salt keeps simulations apart that have the same seeds.
func NewRandom(seed, salt uint64) *Random { return &Random{state: seed*0x9e3779b97f4a7c15 + salt} }

// Next gives 64 random bits.
func (r *Random) Next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Fork gives a stream of its own, so that one more choice here changes none there.
func (r *Random) Fork() *Random { return &Random{state: r.Next()} }

// Below gives 0 to n-1.
func (r *Random) Below(n int) int { return int(r.Next() % uint64(n)) }

// Chance is true so many times in a thousand.
func (r *Random) Chance(perMille int) bool { return r.Below(1000) < perMille }

// Between gives a duration from low on and below high; low, if there is none.
func (r *Random) Between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(r.Next()%uint64(high-low))
}

// Pick gives one of the values.
func Pick[T any](r *Random, values ...T) T { return values[r.Below(len(values))] }

// Shuffle puts values in a random order.
func Shuffle[T any](r *Random, values []T) {
	for i := len(values) - 1; i > 0; i-- {
		j := r.Below(i + 1)
		values[i], values[j] = values[j], values[i]
	}
}
