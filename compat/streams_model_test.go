//go:build compat

package compat

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ottla/compat/harness"
	"ottla/compat/suite"
)

// textPartitions is the number of partitions of the input, of the output, and thereby of what lies between.
const textPartitions = 4

// text is the input of the Streams applications: lines of a real text, numbered, a minute apart.
type text []string

// firstMinute is the time of line 0. It lies in the past, so that no line is of a time to come.
var firstMinute = time.Now().Add(-24 * time.Hour).Truncate(time.Hour).UnixMilli()

// readText takes lines of the LICENSE, from the beginning again where they do not suffice.
func readText(t *appT, n int) text {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(harness.Root(), "LICENSE"))
	t.must(err, "read the text")
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	lines := make(text, n)
	for i := range lines {
		lines[i] = all[i%len(all)]
	}
	return lines
}

func timeOf(id int) int64 { return firstMinute + int64(id)*60_000 }

// records are the lines from one number up to another, dealt out to the partitions.
func (x text) records(from, to int) []suite.Record {
	var records []suite.Record
	for id := from; id < to; id++ {
		records = append(records, suite.Record{
			Partition: int32(id % textPartitions), Timestamp: timeOf(id), Key: []byte(strconv.Itoa(id)), Value: []byte(x[id]),
		})
	}
	return records
}

// words are the words of a line, as the topology splits it.
func words(line string) []string {
	return strings.FieldsFunc(strings.ToLower(line), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// wordModel is what the word count must come to: for each word the number of every line that has it, as often as it has it.
func (x text) wordModel() map[string][]int {
	model := map[string][]int{}
	for id, line := range x {
		for _, word := range words(line) {
			model[word] = append(model[word], id)
		}
	}
	return model
}

// hourModel counts words by hours.
func (x text) hourModel() map[string]int {
	model := map[string]int{}
	for id, line := range x {
		at := timeOf(id)
		for _, word := range words(line) {
			model[fmt.Sprintf("%s@%d", word, at-at%3_600_000)]++
		}
	}
	return model
}

// byKey sorts the output by keys, and fails on a key that lies in two partitions.
func byKey(output []suite.Record) (map[string][]suite.Record, error) {
	keys := map[string][]suite.Record{}
	for _, r := range output {
		key := string(r.Key)
		if before := keys[key]; len(before) > 0 && before[0].Partition != r.Partition {
			return nil, fmt.Errorf("%q lies in partitions %d and %d", key, before[0].Partition, r.Partition)
		}
		keys[key] = append(keys[key], r)
	}
	return keys, nil
}

// sum is a value of the word count, "COUNT:IDS".
type sum struct {
	count int
	ids   []int
}

func parseSum(value string) (sum, error) {
	count, list, _ := strings.Cut(value, ":")
	n, err := strconv.Atoi(count)
	if err != nil {
		return sum{}, fmt.Errorf("value %q: %w", value, err)
	}
	s := sum{count: n}
	for id := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(id)
		if err != nil {
			return sum{}, fmt.Errorf("value %q: %w", value, err)
		}
		s.ids = append(s.ids, n)
	}
	return s, nil
}

// checkWords compares the whole output of the word count with the model. Each value must hold a subset of the word's lines that
// only grows. Without crashes (exact) the n-th value of a word counts n, the last one counts them all, and its time is that of the
// word's last line.
func (x text) checkWords(output []suite.Record, exact bool) error {
	keys, err := byKey(output)
	if err != nil {
		return err
	}
	model := x.wordModel()
	for _, word := range slices.Sorted(maps.Keys(model)) {
		lines := slices.Compact(slices.Clone(model[word]))
		got := keys[word]
		if len(got) == 0 {
			return fmt.Errorf("nothing was said of %q", word)
		}
		if exact && len(got) != len(model[word]) {
			return fmt.Errorf("%q was updated %d times, want %d", word, len(got), len(model[word]))
		}
		if err := checkWord(got, lines, exact); err != nil {
			return fmt.Errorf("%q: %w", word, err)
		}
		if last := got[len(got)-1]; exact && last.Timestamp != timeOf(lines[len(lines)-1]) {
			return fmt.Errorf("%q: the last value is of %d, want %d", word, last.Timestamp, timeOf(lines[len(lines)-1]))
		}
	}
	if len(keys) != len(model) {
		return fmt.Errorf("%d words were counted, want %d", len(keys), len(model))
	}
	return nil
}

func checkWord(got []suite.Record, lines []int, exact bool) error {
	var last sum
	for i, r := range got {
		s, err := parseSum(string(r.Value))
		if err != nil {
			return err
		}
		for _, id := range s.ids {
			if !slices.Contains(lines, id) {
				return fmt.Errorf("line %d is counted and has no such word", id)
			}
		}
		if exact && s.count != i+1 {
			return fmt.Errorf("value %d counts %d", i, s.count)
		}
		if exact && len(s.ids) < len(last.ids) {
			return fmt.Errorf("value %d has lost a line", i)
		}
		last = s
	}
	if !slices.Equal(last.ids, lines) {
		return fmt.Errorf("the last value has lines %v, want %v", last.ids, lines)
	}
	if last.count < len(lines) {
		return fmt.Errorf("the last value counts %d of %d lines", last.count, len(lines))
	}
	return nil
}

// checkHours compares the whole output of the count by hours with the model.
func (x text) checkHours(output []suite.Record) error {
	keys, err := byKey(output)
	if err != nil {
		return err
	}
	model := x.hourModel()
	for key, want := range model {
		got := keys[key]
		if len(got) != want {
			return fmt.Errorf("%s was updated %d times, want %d", key, len(got), want)
		}
		for i, r := range got {
			if string(r.Value) != strconv.Itoa(i+1) {
				return fmt.Errorf("%s: value %d is %s", key, i, r.Value)
			}
		}
	}
	if len(keys) != len(model) {
		return fmt.Errorf("%d words by hours were counted, want %d", len(keys), len(model))
	}
	return nil
}

// checkStateless compares the whole output of the stateless topology with the model: one record for each line that is not blank,
// of its key, time and origin, and in the order of its partition.
func (x text) checkStateless(output []suite.Record, names map[string]string) error {
	seen := map[int]bool{}
	last := map[[2]int32]int64{} // by input and output partition: the offset last seen
	for _, r := range output {
		id, err := strconv.Atoi(string(r.Key))
		if err != nil || id < 0 || id >= len(x) || seen[id] {
			return fmt.Errorf("key %q is no line, or came twice", r.Key)
		}
		seen[id] = true
		want := strings.ToLower(x[id])
		if id%2 == 0 {
			want = strings.ToUpper(x[id])
		}
		name := names[string(r.Key)]
		if name == "" {
			name = "nobody"
		}
		want = name + ": " + want
		offset := int64(id / textPartitions)
		origin := []suite.Header{{Key: "from", Value: fmt.Appendf(nil, "%d-%d", id%textPartitions, offset)}}
		if string(r.Value) != want || r.Timestamp != timeOf(id) || fmt.Sprint(r.Headers) != fmt.Sprint(origin) {
			return fmt.Errorf("line %d came out as %q of %d with %s, want %q of %d with %s", id, r.Value, r.Timestamp, r.Headers, want, timeOf(id), origin)
		}
		way := [2]int32{int32(id % textPartitions), r.Partition}
		if before, ok := last[way]; ok && before >= offset {
			return fmt.Errorf("line %d overtook one of its partition", id)
		}
		last[way] = offset
	}
	for id, line := range x {
		if blank := strings.TrimSpace(line) == ""; blank == seen[id] {
			return fmt.Errorf("line %d: blank %v, seen %v", id, blank, seen[id])
		}
	}
	return nil
}
