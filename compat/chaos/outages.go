package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/history"
)

// Outage is a kill -9 of a leader.
type Outage struct {
	At int64 // nanoseconds from the beginning of the run
	// Took is until each of the partitions that it led had its next acknowledgement: the longest.
	Took time.Duration
	// Calm: no other fault was under way.
	Calm bool

	partitions []int32
}

// Paused is a suspended broker.
type Paused struct {
	// LeftLeaders is when it was in no ISR any more of what others led and somebody wrote to; 0: nobody has seen it. A follower that has
	// all there is stays, until its session ends.
	LeftLeaders time.Duration
	Left        time.Duration // when it was in no ISR at all
	left        bool
}

// inFlight is how long after a kill an answer may be read that the broker had sent before.
const inFlight = int64(30 * time.Millisecond)

// judgeOutages finds out how long each lasted.
func (s *siege) judgeOutages() []Outage {
	s.mu.Lock()
	defer s.mu.Unlock()
	acknowledged := map[int32][]int64{} // per partition: when
	for i := range s.ops {
		if op := &s.ops[i]; op.Kind == history.Work && op.Outcome == history.OK && !op.Transactional {
			for _, send := range op.Sends {
				acknowledged[send.Partition] = append(acknowledged[send.Partition], op.End)
			}
		}
	}
	for _, times := range acknowledged {
		slices.Sort(times) // several clients have written them down
	}
	for n := range s.kills {
		k := &s.kills[n]
		for _, p := range k.partitions {
			times := acknowledged[p]
			next, _ := slices.BinarySearch(times, k.At+inFlight)
			if next == len(times) {
				continue // the work has ended
			}
			k.Took = max(k.Took, time.Duration(times[next]-k.At))
		}
		k.Calm = !slices.ContainsFunc(s.spans, func(o span) bool { return o.end > k.At-int64(time.Second) && o.begin < k.At+int64(k.Took) })
	}
	return s.kills
}

// Unavailable gives the median and the longest of the outages; only of the calm ones, if asked.
func (r *Result) Unavailable(calm bool) (count int, median, longest time.Duration) {
	var all []time.Duration
	for _, o := range r.Outages {
		if o.Took > 0 && (o.Calm || !calm) {
			all = append(all, o.Took)
		}
	}
	if len(all) == 0 {
		return 0, 0, 0
	}
	slices.Sort(all)
	return len(all), all[len(all)/2], all[len(all)-1]
}

// outageText tells of the outages and of who was suspended.
func (r *Result) outageText() string {
	if len(r.Outages) == 0 {
		return ""
	}
	count, median, longest := r.Unavailable(true)
	all, _, worst := r.Unavailable(false)
	text := fmt.Sprintf("; %d leaders killed, next acknowledgement after at most %.2f s; %d of them without another fault: median %.2f s, longest %.2f s; whole %.1f s after the last fault",
		all, worst.Seconds(), count, median.Seconds(), longest.Seconds(), r.WholeAfter.Seconds())
	for _, p := range r.Paused {
		if p.left {
			text += fmt.Sprintf("; a suspended broker left the ISRs of other leaders after %.1f s, all after %.1f s", p.LeftLeaders.Seconds(), p.Left.Seconds())
		}
	}
	return text
}

// probe sends one record after the other to one partition.
func (r *run) probe(n int32) func(context.Context, int32, *rand.Rand) {
	return func(ctx context.Context, process int32, _ *rand.Rand) {
		for epoch := int32(0); !r.stopped() && ctx.Err() == nil; epoch++ {
			client, err := r.client(kgo.RecordDeliveryTimeout(operationLimit))
			if err != nil {
				r.odd("producer: %v", err)
				return
			}
			for sound := true; sound && !r.stopped(); r.wait(10 * time.Millisecond) {
				sound = r.sendOne(ctx, client, history.Producer{ID: process, Epoch: epoch}, n)
			}
			client.Close()
		}
	}
}

func (r *run) sendOne(ctx context.Context, client *kgo.Client, producer history.Producer, n int32) bool {
	record, send := r.record(plain, n, 0)
	op := history.Op{Process: producer.ID, Begin: r.now(), Producer: producer, Sends: []history.Record{send}}
	err := client.ProduceSync(ctx, record).FirstErr()
	if err != nil {
		op.Outcome = history.Unknown
	} else {
		op.Sends[0].Offset = record.Offset
	}
	r.add(op)
	return err == nil
}
