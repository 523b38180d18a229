//go:build compat

package compat

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ottla/compat/suite"
)

const groupTool = "consumer.group.ConsumerGroupCommand"

func groupToolCases() []toolCase {
	const tool, all = "ConsumerGroupCommand", "GroupsCommand"
	return []toolCase{
		{tool, "list and describe", groupsDescribed},
		{tool, "every reset", groupsReset},
		{tool, "resets refused", groupsResetRefused},
		{tool, "export and from-file", groupsExported},
		{tool, "delete-offsets", groupsOffsetsDeleted},
		{tool, "delete", groupsDeleted},
		{tool, "validate-regex, help and version", func(t *toolT) {
			s := t.script("groups-offline")
			s.tool(groupTool, "--validate-regex", "a.*b")
			s.tool(groupTool, "--validate-regex", "a(")
			s.tool(groupTool, "--version")
			s.tool(groupTool, "--help")
			s.tool(groupTool)
			s.compare()
		}},
		{all, "every action", groupsCommand},
	}
}

// script is a sequence of tool runs, whose output and exit codes are compared as a whole with what Apache Kafka's broker made of the
// same sequence: testdata/control/tools/NAME.txt. What differs from run to run is replaced, with the width kept.
type script struct {
	t       *toolT
	name    string
	text    strings.Builder
	replace []*regexp.Regexp
}

func (t *toolT) script(name string, replace ...string) *script {
	s := &script{t: t, name: name}
	for _, pattern := range append(replace, regexp.QuoteMeta(t.node.Addr()), `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}`, `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`) {
		s.replace = append(s.replace, regexp.MustCompile(pattern))
	}
	return s
}

func (s *script) note(text string) { fmt.Fprintf(&s.text, "# %s\n", text) }

// tool runs a tool and takes down what it did.
func (s *script) tool(class string, args ...string) {
	s.t.Helper()
	s.t.Logf("%s %v", class, args)
	r := s.t.run(class, args...)
	short := strings.ReplaceAll(strings.Join(args, " "), s.t.dir, "DIR")
	fmt.Fprintf(&s.text, "$ %s %s\nexit %d\n", class[strings.LastIndex(class, ".")+1:], short, r.Exit)
	for _, stream := range []struct{ mark, text string }{{"1", r.Stdout}, {"2", withoutStack(r.Stderr)}} {
		for line := range strings.Lines(stream.text) {
			line = sortedChoices(strings.TrimRight(strings.ReplaceAll(line, s.t.dir, "DIR"), "\n "))
			for _, pattern := range s.replace {
				line = pattern.ReplaceAllStringFunc(line, func(found string) string { return strings.Repeat("*", len(found)) })
			}
			fmt.Fprintln(&s.text, strings.TrimRight(stream.mark+"> "+line, " "))
		}
	}
}

// withoutStack leaves out Java's stack traces and the table of options, which are the tool's own affair.
func withoutStack(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "Option ") && strings.Contains(line, "  Description") {
			kept.WriteString("(usage)\n")
			break
		}
		if !strings.HasPrefix(line, "\tat ") && !strings.HasPrefix(line, "\t... ") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// sortedChoices puts a list of choices into order: the tools print them as they lie in a hash set, differently in each JVM.
func sortedChoices(line string) string {
	before, choices, found := strings.Cut(line, ": ")
	if !found || !strings.Contains(before, " one of these") && !strings.Contains(before, " one of the following") && !strings.Contains(before, " the following options") && !strings.Contains(before, "Valid") {
		return line
	}
	list := strings.Split(choices, ", ")
	for i := range list {
		list[i] = strings.Trim(list[i], "[]")
	}
	slices.Sort(list)
	return before + ": " + strings.Join(list, ", ")
}

// compare compares with the record, or makes it.
func (s *script) compare() {
	s.t.Helper()
	compareControl(s.t.T, s.t.node.Kind(), filepath.Join("tools", s.name+".txt"), s.text.String())
}

// hour is the distance of the records' timestamps; they begin at 2023-11-14T22:00:00Z.
const hour = int64(time.Hour / time.Millisecond)

// timed makes a topic with ten records in each partition, an hour apart.
func (t *toolT) timed(topic string, partitions int) {
	t.Helper()
	t.create(topic, partitions, map[string]string{"retention.ms": "-1"})
	var records []suite.Record
	for p := range partitions {
		for i := range 10 {
			records = append(records, suite.Record{
				Partition: int32(p), Timestamp: 1_700_000_000_000/hour*hour + int64(i)*hour, Value: []byte("value " + strconv.Itoa(i)),
			})
		}
	}
	acks, err := t.ref.Produce(t.ctx, suite.ProduceOptions{Topic: topic}, records)
	if err != nil || acks[len(acks)-1].Err != "" {
		t.Fatal(err, acks)
	}
}

// commit sets a group's offsets in every partition.
func (t *toolT) commit(group, topic string, offsets ...int64) {
	t.Helper()
	to := map[int32]int64{}
	for p, offset := range offsets {
		to[int32(p)] = offset
	}
	if err := t.ref.Commit(t.ctx, group, topic, to); err != nil {
		t.Fatal(err)
	}
}

// member starts a member of a group, waits until it has read something, and returns how to end it.
func (t *toolT) member(o suite.MemberOptions) (leave func()) {
	t.Helper()
	stop, done, read := make(chan struct{}), make(chan error, 1), make(chan struct{}, 1)
	o.SessionMs = 30000
	o.OnRecord = func(int) {
		select {
		case read <- struct{}{}:
		default:
		}
	}
	go func() {
		_, err := t.ref.ReadInGroup(t.ctx, o, stop)
		done <- err
	}()
	select {
	case <-read:
	case err := <-done:
		t.Fatalf("the member ended: %v", err)
	case <-t.ctx.Done():
		t.Fatal("the member read nothing")
	}
	return func() {
		t.Helper()
		close(stop)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// committedAll waits until a group has committed so much in a topic of ten records a partition.
func (t *toolT) committedAll(group, topic string, partitions int) {
	t.Helper()
	err := suite.Eventually(t.ctx, func() error {
		committed, err := t.ref.Committed(t.ctx, group, topic)
		for p := range partitions {
			if err == nil && committed[int32(p)] != 10 {
				return fmt.Errorf("committed %v", committed)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func groupsDescribed(t *toolT) {
	t.timed("described-a", 3)
	t.timed("described-b", 1)
	t.commit("described-idle", "described-a", 0, 4, 10)
	t.commit("described-idle", "described-b", 2)
	leave := t.member(suite.MemberOptions{Group: "described-busy", Topic: "described-a"})
	t.committedAll("described-busy", "described-a", 3)
	s := t.script("groups-described")
	both := []string{"--describe", "--group", "described-idle", "--group", "described-busy"}
	one := []string{"--describe", "--group", "described-busy"}
	s.tool(groupTool, both...)
	s.tool(groupTool, append(both, "--verbose")...)
	s.tool(groupTool, append(one, "--offsets")...)
	s.tool(groupTool, append(one, "--members")...)
	s.tool(groupTool, append(one, "--members", "--verbose")...)
	s.tool(groupTool, append(one, "--state")...)
	s.tool(groupTool, append(one, "--state", "--verbose")...)
	s.tool(groupTool, append(one, "--members", "--state")...)
	s.tool(groupTool, append(one, "--timeout", "5000")...)
	s.tool(groupTool, "--describe", "--group", "described-idle", "--members")
	s.tool(groupTool, "--describe", "--group", "described-idle", "--state")
	s.tool(groupTool, "--describe", "--group", "described-nobody")
	s.tool(groupTool, "--describe", "--group", "described-nobody", "--state")
	s.tool(groupTool, "--describe", "--group", "described-nobody", "--members")
	s.tool(groupTool, "--delete", "--group", "described-busy")
	s.tool(groupTool, "--reset-offsets", "--group", "described-busy", "--all-topics", "--to-earliest", "--execute")
	s.tool(groupTool, "--delete-offsets", "--group", "described-busy", "--topic", "described-a")
	leave()
	s.note("the member has left")
	s.tool(groupTool, one...)
	s.tool(groupTool, append(one, "--state")...)
	s.compare()
	list := t.ok(groupTool, "--list")
	t.says(list, `(?m)^described-idle$`)
	t.says(t.ok(groupTool, "--list", "--state", "empty"), `(?m)^described-busy +Empty *$`)
	t.says(t.ok(groupTool, "--list", "--state"), `(?m)^GROUP +STATE *\n(.*\n)*described-busy +Empty *$`)
	t.says(t.ok(groupTool, "--list", "--type"), `(?m)^described-busy +Classic *$`)
	t.says(t.ok(groupTool, "--list", "--type", "classic", "--state", "Empty,Stable"), `(?m)^described-busy +Classic +Empty *$`)
	if out := t.ok(groupTool, "--list", "--state", "dead"); strings.Contains(out, "described") {
		t.Errorf("dead groups: %s", out)
	}
	t.says(t.ok(groupTool, "--describe", "--all-groups"), `(?s)described-idle +described-a +0`)
}

func groupsReset(t *toolT) {
	t.timed("reset-a", 3)
	t.timed("reset-b", 1)
	t.commit("resetting", "reset-a", 5, 5, 5)
	t.commit("resetting", "reset-b", 5)
	s := t.script("groups-reset")
	reset := func(args ...string) {
		s.tool(groupTool, append([]string{"--reset-offsets", "--group", "resetting"}, args...)...)
	}
	topic := func(args ...string) { reset(append([]string{"--topic", "reset-a"}, args...)...) }
	topic("--to-earliest")
	topic("--to-earliest", "--dry-run")
	topic("--to-earliest", "--execute")
	topic("--to-latest", "--execute")
	topic("--to-offset", "7", "--execute")
	topic("--to-offset", "70", "--execute")
	topic("--to-offset", "-7", "--execute")
	topic("--shift-by", "2", "--execute")
	topic("--shift-by", "-4", "--execute")
	topic("--shift-by", "-400", "--execute")
	topic("--shift-by", "400", "--execute")
	topic("--to-datetime", "2023-11-15T01:00:00.000", "--execute")
	topic("--to-datetime", "2023-11-15T01:00:00.000Z", "--execute")
	topic("--to-datetime", "2023-11-15T01:00:00.001+00:00", "--execute")
	topic("--to-datetime", "2033-11-15T00:00:00.000", "--execute")
	topic("--by-duration", "P3650D", "--execute")
	topic("--by-duration", "PT1M", "--execute")
	topic("--to-current", "--execute")
	reset("--topic", "reset-a:0,2", "--to-offset", "1", "--execute")
	reset("--topic", "reset-a:1", "--topic", "reset-b", "--to-offset", "3", "--execute")
	reset("--all-topics", "--to-offset", "4", "--execute")
	s.tool(groupTool, "--reset-offsets", "--group", "reset-new", "--topic", "reset-b", "--to-latest", "--execute")
	s.tool(groupTool, "--describe", "--group", "reset-new")
	s.tool(groupTool, "--describe", "--group", "resetting")
	s.compare()
}

func groupsResetRefused(t *toolT) {
	t.timed("refused-a", 1)
	t.commit("refused", "refused-a", 5)
	s := t.script("groups-reset-refused")
	for _, args := range []string{
		"--to-earliest", "--topic refused-a", "--topic refused-a --to-earliest --to-latest", "--topic refused-a --to-earliest --dry-run --execute",
		"--topic refused-missing --to-earliest", "--topic refused-a:9 --to-earliest", "--topic refused-a --to-offset x", "--topic refused-a --by-duration 5",
		"--topic refused-a --to-datetime yesterday", "--all-topics --topic refused-a --to-earliest", "--from-file " + filepath.Join(t.dir, "missing.csv"),
	} {
		s.tool(groupTool, append([]string{"--reset-offsets", "--group", "refused"}, strings.Fields(args)...)...)
	}
	s.tool(groupTool, "--reset-offsets", "--topic", "refused-a", "--to-earliest")
	s.tool(groupTool, "--list", "--delete")
	s.tool(groupTool, "--describe")
	s.tool(groupTool, "--list", "--state", "nonsense")
	s.tool(groupTool, "--list", "--type", "nonsense")
	s.compare()
}

func groupsExported(t *toolT) {
	t.timed("exported-a", 2)
	t.commit("exported-1", "exported-a", 3, 4)
	t.commit("exported-2", "exported-a", 5, 6)
	s := t.script("groups-exported")
	s.tool(groupTool, "--reset-offsets", "--group", "exported-1", "--all-topics", "--to-current", "--export")
	s.tool(groupTool, "--reset-offsets", "--group", "exported-1", "--group", "exported-2", "--all-topics", "--to-current", "--export")
	one, two := filepath.Join(t.dir, "one.csv"), filepath.Join(t.dir, "two.csv")
	for path, text := range map[string]string{
		one: "exported-a,0,1\nexported-a,1,2\n", two: "exported-1,exported-a,0,7\nexported-2,exported-a,1,8\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.tool(groupTool, "--reset-offsets", "--group", "exported-1", "--from-file", one)
	s.tool(groupTool, "--reset-offsets", "--group", "exported-1", "--from-file", one, "--execute")
	s.tool(groupTool, "--reset-offsets", "--group", "exported-1", "--group", "exported-2", "--from-file", two, "--execute")
	s.tool(groupTool, "--describe", "--group", "exported-1")
	s.tool(groupTool, "--describe", "--group", "exported-2")
	s.compare()
}

func groupsOffsetsDeleted(t *toolT) {
	t.timed("forgotten-a", 3)
	t.timed("forgotten-b", 1)
	t.commit("forgetting", "forgotten-a", 1, 2, 3)
	t.commit("forgetting", "forgotten-b", 4)
	s := t.script("groups-delete-offsets")
	forget := func(args ...string) {
		s.tool(groupTool, append([]string{"--delete-offsets", "--group", "forgetting"}, args...)...)
	}
	forget("--topic", "forgotten-a:0,2")
	s.tool(groupTool, "--describe", "--group", "forgetting")
	forget("--topic", "forgotten-a", "--topic", "forgotten-b")
	forget("--topic", "forgotten-missing")
	forget()
	s.tool(groupTool, "--delete-offsets", "--group", "forgetting-nobody", "--topic", "forgotten-a")
	s.tool(groupTool, "--describe", "--group", "forgetting")
	s.compare()
}

func groupsDeleted(t *toolT) {
	t.timed("deleted-a", 1)
	for _, group := range []string{"deleted-1", "deleted-2", "deleted-3"} {
		t.commit(group, "deleted-a", 1)
	}
	s := t.script("groups-delete")
	s.tool(groupTool, "--delete", "--group", "deleted-1")
	s.tool(groupTool, "--delete", "--group", "deleted-1")
	s.tool(groupTool, "--delete", "--group", "deleted-2", "--group", "deleted-nobody")
	s.tool(groupTool, "--delete")
	s.tool(groupTool, "--describe", "--group", "deleted-1")
	s.compare()
	list := t.ok(groupTool, "--list")
	if strings.Contains(list, "deleted-1\n") || strings.Contains(list, "deleted-2\n") || !strings.Contains(list, "deleted-3\n") {
		t.Errorf("the groups left: %s", list)
	}
}

func groupsCommand(t *toolT) {
	const tool = "GroupsCommand"
	t.timed("listed-a", 1)
	t.commit("listed-simple", "listed-a", 1)
	leave := t.member(suite.MemberOptions{Group: "listed-busy", Topic: "listed-a"})
	defer leave()
	s := t.script("groups-command")
	s.tool(tool, "--list", "--group-type", "nonsense")
	s.tool(tool, "--list", "--consumer", "--share")
	s.tool(tool, "--list", "--share")
	s.tool(tool, "--list", "--streams")
	s.tool(tool, "--list", "--protocol", "nonsense")
	s.tool(tool)
	s.tool(tool, "--version")
	s.tool(tool, "--help")
	s.compare()
	for args, pattern := range map[string]string{
		"--list":                      `(?m)^GROUP +TYPE +PROTOCOL *\n(.*\n)*listed-busy +Classic +consumer *$`,
		"--list --consumer":           `(?m)^listed-simple +Classic *$`,
		"--list --group-type classic": `(?m)^listed-busy +Classic +consumer *$`,
		"--list --protocol consumer":  `(?m)^listed-busy +Classic +consumer *$`,
		"--list --group-type classic --protocol consumer": `(?m)^listed-busy +Classic +consumer *$`,
	} {
		t.says(t.ok(tool, strings.Fields(args)...), pattern)
	}
}
