package producer

import (
	"cmp"
	"fmt"
	"slices"

	"ottla/protocol"
)

// transaction is one transaction of a producer; last is NoOffset while it is open.
type transaction struct {
	producer    protocol.ProducerID
	first, last protocol.Offset
}

func byFirst(t transaction, first protocol.Offset) int { return cmp.Compare(t.first, first) }

// ongoing are the open transactions by first offset. A new one begins at the end of the log, so it comes last; one that
// ends is only marked, and leaves the list when it comes to the front or when the marked ones are many. So begin and end
// cost a binary search, however many are open.
type ongoing struct {
	list  []transaction
	ended int // of list
}

// add enters a transaction; at the end but when a snapshot is loaded.
func (o *ongoing) add(t transaction) {
	if n := len(o.list); n == 0 || o.list[n-1].first < t.first {
		o.list = append(o.list, t)
		return
	}
	i, found := slices.BinarySearchFunc(o.list, t.first, byFirst)
	if found {
		o.list[i] = t
		return
	}
	o.list = slices.Insert(o.list, i, t)
}

// takeBack removes the newest transaction, which began at first.
func (o *ongoing) takeBack(first protocol.Offset) {
	n := len(o.list) - 1
	if n < 0 || o.list[n].first != first {
		panic(fmt.Sprintf("producer: the transaction that began at %d is not the newest", first))
	}
	o.list = o.list[:n]
}

// end marks the transaction that began at first. It stays in place until settle, so that it can be taken back.
func (o *ongoing) end(first, last protocol.Offset) (transaction, bool) {
	i, found := slices.BinarySearchFunc(o.list, first, byFirst)
	if !found || o.list[i].last != protocol.NoOffset {
		return transaction{}, false
	}
	o.list[i].last = last
	o.ended++
	return o.list[i], true
}

// reopen takes an end back.
func (o *ongoing) reopen(first protocol.Offset) {
	i, found := slices.BinarySearchFunc(o.list, first, byFirst)
	if !found {
		panic(fmt.Sprintf("producer: the transaction that began at %d is gone before its end was settled", first))
	}
	o.list[i].last = protocol.NoOffset
	o.ended--
}

// settle drops what has ended.
func (o *ongoing) settle() {
	front := 0
	for front < len(o.list) && o.list[front].last != protocol.NoOffset {
		front++
	}
	o.list, o.ended = o.list[front:], o.ended-front
	if o.ended > len(o.list)/2 {
		o.list = slices.DeleteFunc(slices.Clone(o.list), func(t transaction) bool { return t.last != protocol.NoOffset })
		o.ended = 0
	}
}

// oldest is the open transaction that began first.
func (o *ongoing) oldest() (transaction, bool) {
	for _, t := range o.list { // the first, but within a marked stretch
		if t.last == protocol.NoOffset {
			return t, true
		}
	}
	return transaction{}, false
}

// unreplicated are transactions that have ended but whose marker is not below the high watermark yet, by the offsets of
// the markers. Of those only the ones are kept that matter to the first unstable offset: a transaction that began after
// another one that leaves later does not.
type unreplicated struct{ list []transaction }

// add enters a transaction whose marker is the newest. It returns what is not needed any more.
func (u *unreplicated) add(t transaction) (covered []transaction) {
	keep := len(u.list)
	for keep > 0 && u.list[keep-1].first > t.first {
		keep--
	}
	covered = slices.Clone(u.list[keep:])
	u.list = append(u.list[:keep], t)
	return covered
}

// takeBack undoes the newest add.
func (u *unreplicated) takeBack(covered []transaction) {
	u.list = append(u.list[:len(u.list)-1], covered...)
}

// replicated drops the transactions whose marker is below the high watermark.
func (u *unreplicated) replicated(highWatermark protocol.Offset) {
	front := 0
	for front < len(u.list) && u.list[front].last < highWatermark {
		front++
	}
	if u.list = u.list[front:]; len(u.list) == 0 {
		u.list = nil // the array behind it would only grow
	}
}
