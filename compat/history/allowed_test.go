package history

import "testing"

// What is allowed is found where it is planted, and is no anomaly.
func TestAllowed(t *testing.T) {
	other := func(op Op) Op { return op.by(2, Producer{2, 1}) }
	x, y := sent(1, 0, 11), sent(1, 1, 12)
	for _, h := range []struct {
		name string
		ops  []Op
		want Allowed
	}{
		{"writes in a circle", []Op{txn(a, y), other(txn(x, b))}, Allowed{WriteCycles: 1}},
		{"writes in one order", []Op{txn(a, x), other(txn(b, y))}, Allowed{}},
		{"writes in a circle, one of which failed", []Op{txn(a, y), other(txn(x, b).as(Fail))}, Allowed{}},
		// Each has read what there was before the other wrote (write skew).
		{"reads and writes in a circle", []Op{
			txn(a, x), txn(b).by(3, Producer{3, 1}).reading(x), other(txn(y)).reading(a),
		}, Allowed{ReadWriteCycles: 1}},
		{"reads and writes one after the other", []Op{
			txn(a, x), txn(b).by(3, Producer{3, 1}).reading(x), other(txn(y)).reading(a, b),
		}, Allowed{}},
		{"a poll that is behind", []Op{
			txn(a).times(0, 1), txn(b).times(2, 3), txn(d).times(4, 5), poll(2, a).times(10, 11), poll(2, b, d).times(12, 13),
		}, Allowed{WorstLag: 7}},
		{"polls of what was there", []Op{txn(a).times(0, 1), poll(2, a).times(2, 3), txn(b).times(1, 4), poll(2, b).times(5, 6)}, Allowed{}},
	} {
		r := Check(h.ops, Options{})
		if r.Found() != 0 {
			t.Errorf("%s: %s", h.name, r)
		}
		if r.Allowed != h.want {
			t.Errorf("%s: %+v, want %+v", h.name, r.Allowed, h.want)
		}
	}
}
