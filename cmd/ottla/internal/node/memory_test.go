package node

import "testing"

func TestShare(t *testing.T) {
	for _, c := range []struct{ configured, granted, want int64 }{
		{0, 0, 1000}, {7, 0, 7}, {7, 80, 7}, {0, 80, 10}, {0, 1 << 40, 1000},
	} {
		if got := share(c.configured, c.granted, 8, 1000); got != c.want {
			t.Errorf("share(%d, %d) = %d, want %d", c.configured, c.granted, got, c.want)
		}
	}
}
