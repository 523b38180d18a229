package replica

import (
	"slices"
	"sort"
	"time"

	"ottla/protocol"
	"ottla/storage/deadlines"
)

// ack is an append that waits for all in-sync replicas.
type ack struct {
	required protocol.Offset // the high watermark that answers it
	epoch    protocol.LeaderEpoch
	result   AppendResult
	done     func(AppendResult)
	timer    deadlines.Timer
}

// ackList is ordered by required: appends come in the order of their offsets,
// but for repeats of a batch that is still waiting. Guarded by stateMu.
type ackList []*ack

func (l *ackList) add(a *ack) {
	at := sort.Search(len(*l), func(i int) bool { return (*l)[i].required > a.required })
	*l = slices.Insert(*l, at, a)
}

// remove takes a out and tells whether it was in.
func (l *ackList) remove(a *ack) bool {
	first := sort.Search(len(*l), func(i int) bool { return (*l)[i].required >= a.required })
	for i := first; i < len(*l) && (*l)[i].required == a.required; i++ {
		if (*l)[i] == a {
			*l = slices.Delete(*l, i, i+1)
			return true
		}
	}
	return false
}

// take moves out what the core's present state answers: the front of the list
// up to the high watermark, or, if the role or the ISR changed, anything.
func (l *ackList) take(r *Replica, all bool, answers []func()) []func() {
	rest := (*l)[:0]
	for i, a := range *l {
		done, err := r.core.Progress(a.epoch, a.required)
		if !done {
			if !all {
				rest = append(rest, (*l)[i:]...)
				break
			}
			rest = append(rest, a)
			continue
		}
		answers = append(answers, a.answer(r, err))
	}
	clear((*l)[len(rest):])
	*l = rest
	return answers
}

// fail moves everything out.
func (l *ackList) fail(r *Replica, why error, answers []func()) []func() {
	for _, a := range *l {
		answers = append(answers, a.answer(r, why))
	}
	*l = nil
	return answers
}

// answer makes the call that ends the waiting, for when no lock is held. As in
// Apache Kafka the offsets are told with an error too: the batch may be there.
func (a *ack) answer(r *Replica, err error) func() {
	result := a.result
	result.Err = err
	result.CurrentLeader = currentLeader(r.core.View(), err)
	r.manager.timers.Remove(&a.timer)
	return func() { a.done(result) }
}

// await registers an append for acks=all and arms its deadline; it tells
// whether timers.Wake is to be called. stateMu is held.
func (r *Replica) await(a *ack, deadline time.Time) (earlier bool) {
	a.timer = deadlines.Timer{At: deadline, Expire: func(time.Time) {
		r.stateMu.Lock()
		waited := r.acks.remove(a)
		r.stateMu.Unlock()
		if waited {
			result := a.result
			result.Err = protocol.Errorf(protocol.RequestTimedOut, "the in-sync replicas did not confirm the records in time")
			a.done(result)
		}
	}}
	r.acks.add(a)
	return r.manager.timers.Add(&a.timer)
}
