package server

import (
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/wire"
)

// TestTimeBuckets: the buckets rise without a gap, and each one's middle lies in it.
func TestTimeBuckets(t *testing.T) {
	last := -1
	for micros := uint64(0); micros < 1<<21; micros++ {
		at := timeBucket(micros)
		if at != last && at != last+1 {
			t.Fatalf("%d µs are in bucket %d, those before in %d", micros, at, last)
		}
		last = at
		if middle, exact := TimeBucketMillis(at), float64(micros)/1000; middle < exact*15/16 || middle > exact*17/16 {
			t.Fatalf("%d µs are told as %v ms", micros, middle)
		}
	}
	if at := timeBucket(1 << 62); at != timeBuckets-1 {
		t.Errorf("a time without end is in bucket %d", at)
	}
}

// TestRequestTable: what is counted under which API.
func TestRequestTable(t *testing.T) {
	s := &Server{}
	start := time.UnixMilli(1000)
	for _, r := range []Request{
		{Header: wire.RequestHeader{Key: protocol.Fetch, Version: 17}},
		{Header: wire.RequestHeader{Key: protocol.Fetch, Version: 17}, FromFollower: true},
		{Header: wire.RequestHeader{Key: protocol.Produce, Version: 3}, closing: ErrClosed},
		{Header: wire.RequestHeader{Key: 32000, Version: 32000}},
		{Header: wire.RequestHeader{Key: -5, Version: -5}},
	} {
		r.Received = start
		s.requests.count(&r, start.Add(3*time.Millisecond))
	}
	type seen struct {
		key      protocol.APIKey
		follower bool
		version  int
		closed   int64
	}
	var got []seen
	s.EachRequest(func(key protocol.APIKey, follower bool, stats *RequestStats) {
		for version := range stats.Versions {
			for range stats.Versions[version].Load() {
				got = append(got, seen{key, follower, version, stats.Closed.Load()})
			}
		}
		if total := stats.Micros.Load(); total%3000 != 0 || stats.Times[timeBucket(3000)].Load() == 0 {
			t.Errorf("%s took %d µs", key, total)
		}
	})
	want := []seen{{protocol.Produce, false, 0, 1}, {protocol.Produce, false, 3, 1}, {protocol.Fetch, false, 17, 0}, {127, false, 31, 0}, {protocol.Fetch, true, 17, 0}}
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}
