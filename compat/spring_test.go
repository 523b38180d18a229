//go:build compat

package compat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func springCases() []appCase {
	return []appCase{
		{name: "spring-kafka template, listeners of every kind, dead letters, retry topics, replies", run: springProgram},
		{name: "spring-kafka template in a transaction", run: springTransactions},
	}
}

// springRecord is a record for the template of the program, or from it.
type springRecord struct {
	Partition int    `json:"partition"`
	Key       string `json:"key"`
	Value     string `json:"value"`
}

// springNote is what a listener was given.
type springNote struct {
	springRecord
	Topic   string            `json:"topic"`
	Offset  int               `json:"offset"`
	Thread  string            `json:"thread"`
	Headers map[string]string `json:"headers"`
	Batch   string            `json:"batch"` // first record of the list it came in
	Size    int               `json:"size"`  // of the list
}

// place is topic-partition@offset.
func (n springNote) place() string { return fmt.Sprintf("%s-%d@%d", n.Topic, n.Partition, n.Offset) }

type springAnswer struct {
	Sent    []springNote `json:"sent"`
	Manual  []springNote `json:"manual"`
	Faulty  []springNote `json:"faulty"`
	Dead    []springNote `json:"dead"`
	Retried []springNote `json:"retried"`
	Batches []springNote `json:"batches"`
	Seeking []springNote `json:"seeking"`
	Answers []string     `json:"answers"`
}

// springInput is what the template sends, by topics.
func springInput() map[string][]springRecord {
	in := map[string][]springRecord{}
	fill := func(topic string, partitions, n int, odd int, word string) {
		for i := range n {
			value := fmt.Sprintf("good-%d", i)
			if odd > 0 && i%odd == 1 {
				value = fmt.Sprintf("%s-%d", word, i)
			}
			in[topic] = append(in[topic], springRecord{i % partitions, fmt.Sprintf("key-%d", i), value})
		}
	}
	fill("spring-manual", 6, 60, 10, "later")
	fill("spring-faulty", 2, 20, 5, "bad")
	fill("spring-retried", 2, 10, 5, "bad")
	fill("spring-batches", 3, 90, 0, "")
	fill("spring-seek", 1, 12, 0, "")
	return in
}

func springProgram(t *appT) {
	in := springInput()
	var a springAnswer
	t.must(t.apps.Run(t.ctx, "spring", map[string]any{
		"bootstrap": t.node.Addr(), "send": in, "questions": []string{"one", "two", "three"}, "seek": 5, "again": 7,
		"expect": map[string]int{
			"manual": 60 + 6, "faulty": 20 + 2*4, "dead": 4, "retried": 10 + 3*2, "batches": 90, "seeking": 12,
		},
	}, &a), "run the program")

	next := map[string]int{}
	for i, n := range a.Sent {
		key := fmt.Sprintf("%s-%d", n.Topic, n.Partition)
		if n.Offset != next[key] {
			t.Fatalf("acknowledgement %d is of %s, want offset %d", i, n.place(), next[key])
		}
		next[key]++
	}
	springManual(t, a.Manual, in["spring-manual"])
	springDead(t, a, in["spring-faulty"])
	springRetried(t, a.Retried, in["spring-retried"])
	springBatches(t, a.Batches, in["spring-batches"])
	springSeeking(t, a.Seeking, in["spring-seek"])
	if fmt.Sprint(a.Answers) != "[ONE TWO THREE]" {
		t.Errorf("answers are %v", a.Answers)
	}
	springCommitted(t, map[string]map[string]int64{
		"manual":  {"spring-manual": 60},
		"faulty":  {"spring-faulty": 20},
		"dead":    {"spring-faulty-dlt": 4},
		"retried": {"spring-retried": 10},
		"batches": {"spring-batches": 90},
		"seeking": {"spring-seek": 12},
	})
}

// springOrdered checks that the notes are what was sent to the partitions, in order; a record of which again says so comes as often.
func springOrdered(t *appT, listener string, notes []springNote, sent []springRecord, times func(springRecord) int) {
	t.Helper()
	want, got := map[int][]springRecord{}, map[int][]springRecord{}
	for _, r := range sent {
		for range times(r) {
			want[r.Partition] = append(want[r.Partition], r)
		}
	}
	for _, n := range notes {
		got[n.Partition] = append(got[n.Partition], n.springRecord)
	}
	for p, records := range want {
		if !slices.Equal(got[p], records) {
			t.Errorf("%s was given %v in partition %d, want %v", listener, got[p], p, records)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s was given partitions %v", listener, got)
	}
}

func once(springRecord) int { return 1 }

func springManual(t *appT, notes []springNote, sent []springRecord) {
	t.Helper()
	springOrdered(t, "manual", notes, sent, func(r springRecord) int {
		if strings.HasPrefix(r.Value, "later") {
			return 2
		}
		return 1
	})
	threads := map[string][]int{}
	for _, n := range notes {
		if !slices.Contains(threads[n.Thread], n.Partition) {
			threads[n.Thread] = append(threads[n.Thread], n.Partition)
		}
	}
	if len(threads) != 3 {
		t.Errorf("threads took partitions %v", threads)
	}
	for thread, partitions := range threads {
		if len(partitions) != 2 {
			t.Errorf("thread %s took partitions %v", thread, partitions)
		}
	}
}

func bad(value string) bool { return strings.HasPrefix(value, "bad") }

// springDead checks three deliveries of each record that cannot be taken, with their numbers, and its copy among the dead letters.
func springDead(t *appT, a springAnswer, sent []springRecord) {
	t.Helper()
	springOrdered(t, "faulty", a.Faulty, sent, func(r springRecord) int {
		if bad(r.Value) {
			return 3
		}
		return 1
	})
	attempts := map[string]string{}
	places := map[string]springNote{}
	for _, n := range a.Faulty {
		attempts[n.Value] += n.Headers["kafka_deliveryAttempt"]
		places[n.Value] = n
	}
	for value, numbers := range attempts {
		if want := map[bool]string{true: "123", false: "1"}[bad(value)]; numbers != want {
			t.Errorf("%s was delivered as attempts %s, want %s", value, numbers, want)
		}
	}
	if len(a.Dead) != 4 {
		t.Fatalf("dead letters are %v", a.Dead)
	}
	for _, n := range a.Dead {
		from := places[n.Value]
		got := fmt.Sprintf("%s-%s@%s", n.Headers["kafka_dlt-original-topic"], n.Headers["kafka_dlt-original-partition"], n.Headers["kafka_dlt-original-offset"])
		if !bad(n.Value) || got != from.place() || n.Partition != from.Partition || n.Key != from.Key ||
			!strings.Contains(n.Headers["kafka_dlt-exception-message"], "cannot take "+n.Value) || n.Headers["kafka_dlt-original-consumer-group"] != "faulty" {
			t.Errorf("dead letter %+v of %+v", n, from)
		}
	}
}

// springRetried checks that a record that cannot be taken went over both retry topics to the topic of dead letters, and that the
// others did not wait for it.
func springRetried(t *appT, notes []springNote, sent []springRecord) {
	t.Helper()
	way := map[string]string{}
	for _, n := range notes {
		way[n.Value] += " " + strings.TrimPrefix(n.Topic, "spring-retried")
	}
	for _, r := range sent {
		want := " "
		if bad(r.Value) {
			want = "  -retry-50 -retry-100 -dlt"
		}
		if way[r.Value] != want {
			t.Errorf("%s went by%q, want%q", r.Value, way[r.Value], want)
		}
	}
	if len(way) != len(sent) {
		t.Errorf("records went by %v", way)
	}
}

func springBatches(t *appT, notes []springNote, sent []springRecord) {
	t.Helper()
	springOrdered(t, "batches", notes, sent, once)
	lists := map[string]int{}
	for _, n := range notes {
		lists[n.Batch]++
		if n.Size > 10 {
			t.Errorf("a list has %d records", n.Size)
		}
	}
	if len(lists) < 9 || len(lists) == len(notes) {
		t.Errorf("90 records came in %d lists", len(lists))
	}
}

func springSeeking(t *appT, notes []springNote, sent []springRecord) {
	t.Helper()
	var offsets []int
	for _, n := range notes {
		offsets = append(offsets, n.Offset)
		if n.springRecord != sent[n.Offset] {
			t.Errorf("%s holds %v, want %v", n.place(), n.springRecord, sent[n.Offset])
		}
	}
	if fmt.Sprint(offsets) != "[0 1 2 3 4 5 6 7 8 9 10 11 5 6 7 8 9 10 11]" {
		t.Errorf("offsets were read as %v", offsets)
	}
}

// springCommitted checks what the listeners' groups have committed, as the sum over partitions.
func springCommitted(t *appT, want map[string]map[string]int64) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(t.node.Addr()))
	t.must(err, "connect")
	defer client.Close()
	for group, topics := range want {
		offsets, err := kadm.NewClient(client).FetchOffsets(t.ctx, group)
		t.must(err, "offsets of "+group)
		got := map[string]int64{}
		offsets.Each(func(o kadm.OffsetResponse) { got[o.Topic] += o.At })
		for topic, n := range topics {
			if got[topic] != n {
				t.Errorf("group %s has committed %v, want %v", group, got, topics)
			}
		}
	}
}

func springTransactions(t *appT) {
	t.topic("spring-tx", 1)
	var answer map[string]any
	t.must(t.apps.Run(t.ctx, "spring_transactions", map[string]any{
		"bootstrap": t.node.Addr(), "topic": "spring-tx", "values": []string{"a", "b", "c"},
	}, &answer), "run the program")
	records, err := t.tail("spring-tx", true).read(t.ctx)
	t.must(err, "read")
	var got []string
	for _, r := range records {
		got = append(got, string(r.Value))
	}
	if fmt.Sprint(got) != "[false-a false-b false-c]" {
		t.Errorf("read %v", got)
	}
}
