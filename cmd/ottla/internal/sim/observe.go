package sim

import (
	"time"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/storage/log"
)

// observation is what a look at a replica showed.
type observation struct {
	incarnation   int // 0: never seen
	start         protocol.Offset
	highWatermark protocol.Offset
	end           protocol.Offset
	durable       protocol.Offset
}

// watch is which replicas of a host are looked at after each event.
type watch struct {
	image   *metadata.Image
	list    []watched
	missing []*partModel // that are to be here, and whose log is not open
}

type watched struct {
	part *partModel
	tp   protocol.TopicPartition
	log  *log.Log
}

// observe checks what must be true at any moment.
func (h *host) observe() {
	if image := h.node.Image(); image != h.watched.image {
		h.newImage(image)
	}
	missing := h.watched.missing
	h.watched.missing = nil
	for _, p := range missing {
		h.watch(p)
	}
	for i := range h.watched.list {
		h.observePart(&h.watched.list[i])
	}
}

// newImage checks that a committed change has taken nothing back, and finds what to
// watch.
func (h *host) newImage(image *metadata.Image) {
	m := &h.s.model
	h.watched = watch{image: image}
	for topic := range image.Topics() {
		t := m.topic(topic.Name, topic.ID)
		if t.deleted {
			h.s.Violate("topic %s (%s) was deleted, and is back", t.name, t.id)
		}
		if topic.PartitionCount() < len(t.parts) {
			h.s.Violate("topic %s (%s) had %d partitions and has %d", t.name, t.id, len(t.parts), topic.PartitionCount())
		}
		for n := range topic.Partitions() {
			h.watch(t.part(n))
		}
	}
	for _, t := range m.order {
		if !t.deleteAsked && image.TopicByID(t.id) == nil {
			h.s.Violate("topic %s (%s) was there, nobody deleted it, and it is gone", t.name, t.id)
		}
	}
}

// watch has a partition looked at from now on, if its log is open. What a start has found is compared with what must have survived as
// soon as it can be seen: a log may wait for room on the disk.
func (h *host) watch(p *partModel) {
	l := h.node.Store().Log(p.tp())
	if l == nil || l.TopicID() != p.topic.id {
		h.watched.missing = append(h.watched.missing, p)
		return
	}
	h.watched.list = append(h.watched.list, watched{p, p.tp(), l})
	if p.cutPending || p.wasClean || p.seen.incarnation > 0 && p.seen.incarnation != h.incarnation {
		h.checkSurvivor(p, l)
	}
}

func (h *host) observePart(w *watched) {
	p := w.part
	highWatermark, err := h.node.Replicas().HighWatermark(w.tp)
	if err != nil {
		return // removed, or offline: the next image or start tells
	}
	if l := h.node.Store().Log(w.tp); l != nil {
		w.log = l // another one after a move to another disk
	}
	view := w.log.View()
	h.observeTransactions(p, view.FirstUnstableOffset)
	now := observation{h.incarnation, view.LogStartOffset, highWatermark, view.LogEndOffset, view.DurableEnd}
	before := p.seen
	if now == before {
		return
	}
	if now.start > now.highWatermark || now.highWatermark > now.end || now.durable > now.end {
		h.s.Violate("%s: log start %d <= high watermark %d <= end %d, durable %d does not hold", p, now.start, now.highWatermark, now.end, now.durable)
	}
	if p.topic.plan.flush && before.incarnation == now.incarnation && now.highWatermark > max(now.durable, before.highWatermark) {
		h.s.Violate("%s: the high watermark %d is beyond what is durable, %d", p, now.highWatermark, now.durable)
	}
	if before.incarnation == now.incarnation {
		if now.start < before.start || now.highWatermark < before.highWatermark || now.end < before.end || now.durable < before.durable {
			h.s.Violate("%s: went back from %+v to %+v", p, before, now)
		}
	}
	h.follow(p, w.log)
	if now.start > before.start {
		h.startMoved(p, w.log, before.start, now.start)
	}
	p.maxStart = max(p.maxStart, now.start)
	p.seen = now
}

// startMoved checks that records went only by what was asked for: DeleteRecords, or
// retention by time or size.
func (h *host) startMoved(p *partModel, l *log.Log, from, to protocol.Offset) {
	h.s.Linef("%s: log start %d -> %d, %d bytes in %d segments", p, from, to, l.Size(), len(l.Segments()))
	from = max(from, h.s.model.deletes[p.tp()])
	if from >= to {
		return
	}
	t := p.topic.plan
	if t.retention >= 0 && p.allBefore(from, to, h.s.Now.Add(-t.retention)) {
		return
	}
	if t.retentionBytes >= 0 && (l.Size() >= t.retentionBytes || p.cutPending) { // what a cut took was counted
		return
	}
	if t.retention >= 0 && t.retentionBytes >= 0 && p.allBefore(to-1, to, h.s.Now.Add(-t.retention)) {
		return // the first ones by size, the last ones by age
	}
	h.s.Violate("%s: offsets %d to %d are gone, and nothing asked for it (size %d, plan %+v)", p, from, to, l.Size(), *t)
}

// allBefore tells whether all that is known of a range is older than a time.
func (p *partModel) allBefore(from, to protocol.Offset, limit time.Time) bool {
	for offset := from; offset < to; offset++ {
		if timestamp, known := p.times[offset]; known && timestamp >= limit.UnixMilli() {
			return false
		}
	}
	return true
}

// checkBoot compares what a start has found with what must have survived. It runs
// right after Start, before anything can change.
func (h *host) checkBoot() {
	h.watched = watch{}
	h.newImage(h.node.Image())
	for _, p := range h.watched.missing {
		if !h.sawFault {
			h.s.Violate("%s: there is no log after a start: %v", p, h.node.Store().PartitionError(p.tp()))
		}
	}
}

func (h *host) checkSurvivor(p *partModel, l *log.Log) {
	view, before := l.View(), p.seen
	what := "kill"
	least := before.end
	if p.cutPending {
		what = "power cut"
		least = max(before.durable, p.floor)
	}
	if p.wasClean {
		what, least = "clean stop", before.end
		if view.LogStartOffset < before.start || view.LogEndOffset != before.end {
			h.s.Violate("%s: a clean stop left %d to %d, there is %d to %d", p, before.start, before.end, view.LogStartOffset, view.LogEndOffset)
		}
	}
	if view.LogEndOffset < least {
		h.s.Violate("%s: after a %s the log ends at %d, and not at %d or later (seen before: %+v, acknowledged or read after a flush: %d)",
			p, what, view.LogEndOffset, least, before, p.floor)
	}
	if view.LogStartOffset > before.start && before.incarnation > 0 {
		h.startMoved(p, l, before.start, view.LogStartOffset)
	}
	if p.cutPending {
		h.s.model.truncate(p, view.LogEndOffset, h.incarnation)
		p.shadow.forget(view.LogEndOffset)
	}
	p.cutPending, p.wasClean = false, false
	p.maxStart = max(p.maxStart, view.LogStartOffset)
	p.seen = observation{start: view.LogStartOffset}
	h.observePart(&watched{p, p.tp(), l})
	h.compareLoads(p, l)
}
