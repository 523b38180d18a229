package assign

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ottla/protocol"
)

// topicID gives the id of the topic with a number.
func topicID(number int) (id protocol.TopicID) {
	binary.BigEndian.PutUint64(id[8:], uint64(number))
	return id
}

// step is one step of a story in testdata.
type step struct {
	line  int
	name  string
	group Group
	gets  map[string]string
}

func readSteps(t *testing.T) (steps []step) {
	file, err := os.Open("testdata/assignments-4.4.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	var s step
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0:
			steps = append(steps, s)
		case len(words) == 1:
			s = step{line: n, name: words[0], group: Group{Topics: map[protocol.TopicID]Topic{}}, gets: map[string]string{}}
		case words[0] == "topic":
			id := topicID(number(t, words[1]))
			s.group.Topics[id] = Topic{ID: id, Partitions: int32(number(t, words[2]))}
		case words[0] == "member":
			s.group.Members = append(s.group.Members, readMember(t, words[1:]))
		case words[0] == "gets":
			s.gets[words[1]] = words[2]
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return steps
}

func readMember(t *testing.T, words []string) Member {
	m := Member{ID: words[0], Owned: map[protocol.TopicID][]int32{}}
	if words[1] != "-" {
		m.InstanceID = words[1]
	}
	if words[2] != "-" {
		for _, topic := range strings.Split(words[2], ",") {
			m.Topics = append(m.Topics, topicID(number(t, topic)))
		}
	}
	if words[3] != "-" {
		for _, of := range strings.Split(words[3], ";") {
			topic, partitions, _ := strings.Cut(of, ":")
			for _, p := range strings.Split(partitions, ",") {
				id := topicID(number(t, topic))
				m.Owned[id] = append(m.Owned[id], int32(number(t, p)))
			}
		}
	}
	return m
}

func number(t *testing.T, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// show writes an assignment as testdata has it.
func show(assignment Assignment) string {
	if len(assignment) == 0 {
		return "-"
	}
	var of []string
	for _, id := range slices.SortedFunc(maps.Keys(assignment), compareIDs) {
		text := make([]string, 0, len(assignment[id]))
		for _, p := range assignment[id] {
			text = append(text, strconv.Itoa(int(p)))
		}
		of = append(of, fmt.Sprintf("%d:%s", binary.BigEndian.Uint64(id[8:]), strings.Join(text, ",")))
	}
	return strings.Join(of, ";")
}

func TestAssignAsApacheKafka(t *testing.T) {
	steps := readSteps(t)
	if len(steps) < 400 {
		t.Fatalf("only %d steps were read", len(steps))
	}
	for _, s := range steps {
		assignor, known := ByName(s.name)
		if !known {
			t.Fatalf("line %d: there is no assignor %q", s.line, s.name)
		}
		result := assignor(s.group)
		if len(result) != len(s.group.Members) {
			t.Errorf("line %d: %d members have an assignment, and there are %d", s.line, len(result), len(s.group.Members))
		}
		for member, want := range s.gets {
			if got := show(result[member]); got != want {
				t.Errorf("line %d (%s): %s gets %s, and with Apache Kafka %s", s.line, s.name, member, got, want)
			}
		}
	}
}
