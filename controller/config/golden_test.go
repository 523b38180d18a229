package config

import (
	"os"
	"strings"
	"testing"
)

// goldenLines reads a golden file as lines of tab-separated fields.
func goldenLines(t *testing.T, file string) [][]string {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for _, line := range strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n") {
		all = append(all, strings.Split(line, "\t"))
	}
	return all
}

// properties reads key=value lines, as of a file.
func properties(text string) []Property {
	var all []Property
	for _, line := range strings.Split(text, "\n") {
		if name, given, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			all = append(all, Property{Name: name, Value: strings.TrimLeft(given, " "), Origin: FromFile, Where: "a test"})
		}
	}
	return Layer(all)
}

var scopes = map[string]Scope{"broker": BrokerScope, "topic": TopicScope, "group": GroupScope, "client-metrics": ClientMetricsScope}

// TestTableEqualsKafka: every key of Kafka's has a row with the same type,
// default and update mode, and no other rows exist but our own.
func TestTableEqualsKafka(t *testing.T) {
	modes := map[string]Mode{"read-only": ReadOnly, "per-broker": PerBroker, "cluster-wide": ClusterWide, "": ReadOnly}
	seen := map[Scope]int{}
	for _, f := range goldenLines(t, "configdef-4.4.0.tsv") {
		scope, ok := scopes[f[0]]
		if !ok {
			continue
		}
		seen[scope]++
		row := index[scope].byName[f[1]]
		if row == nil {
			t.Errorf("%s %s has no row", f[0], f[1])
			continue
		}
		if row.Type.String() != f[2] {
			t.Errorf("%s %s is a %s, Kafka: %s", f[0], f[1], row.Type, f[2])
		}
		want := map[string]string{`\N`: Null, `\R`: Required}[f[3]]
		if want == "" {
			want = f[3]
		}
		if row.Default != want {
			t.Errorf("%s %s has the default %q, Kafka: %q", f[0], f[1], row.Default, want)
		}
		if row.Mode != modes[f[6]] || row.Internal != (f[7] == "true") {
			t.Errorf("%s %s has mode %d, internal %v, Kafka: %s, %s", f[0], f[1], row.Mode, row.Internal, f[6], f[7])
		}
	}
	for name, scope := range scopes {
		extra := 0
		if scope == BrokerScope {
			extra = len(ownRows)
		}
		if len(Rows(scope)) != seen[scope]+extra || seen[scope] == 0 {
			t.Errorf("%d rows of scope %s, Kafka: %d", len(Rows(scope)), name, seen[scope])
		}
	}
}

// TestSynonymsEqualKafka compares the chains from topic keys to broker keys.
func TestSynonymsEqualKafka(t *testing.T) {
	seen := 0
	for _, f := range goldenLines(t, "configdef-4.4.0.tsv") {
		switch f[0] {
		case "synonym":
			seen++
			var got []string
			for _, link := range topicSynonyms[f[1]] {
				converted := value{link.convert(36000)}
				got = append(got, link.name+"/"+*converted.text())
			}
			if want := strings.TrimSpace(f[2]); strings.Join(got, " ") != want {
				t.Errorf("%s comes from %v, Kafka: %s", f[1], got, want)
			}
		case "bsyn":
			if got := "[" + strings.Join(brokerSynonyms(f[1]), ", ") + "]"; got != f[2] {
				t.Errorf("%s comes from %s, Kafka: %s", f[1], got, f[2])
			}
		}
	}
	if seen != len(topicSynonyms) {
		t.Errorf("%d topic keys have synonyms, Kafka: %d", len(topicSynonyms), seen)
	}
}

// TestRowsAreComplete: every row has a sentence, refused rows a reason, and
// defaults are values the row takes.
func TestRowsAreComplete(t *testing.T) {
	for _, scope := range scopes {
		for _, row := range Rows(scope) {
			if len(row.Doc) < 15 || !strings.HasSuffix(row.Doc, ".") {
				t.Errorf("%s has the sentence %q", row.Name, row.Doc)
			}
			if (row.Support == Refused) != (row.Reason != "") {
				t.Errorf("%s has support %d and the reason %q", row.Name, row.Support, row.Reason)
			}
			if text, ok := row.defaultText(); ok {
				if _, bad := row.parse(text); bad != nil && row.Name != "share.auto.offset.reset" {
					t.Errorf("%s does not take its default %q: %s", row.Name, text, bad.kafka)
				}
			}
		}
	}
}

var unescape = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r")

// tooStrict are values that Kafka's start takes and ours does not, each for a
// reason.
func tooStrict(name, text string) string {
	switch {
	case name == "log.cleaner.threads" && text == "0":
		return "Kafka divides by it"
	case text == "NaN":
		return "no ratio is not a number"
	}
	return ""
}

// TestBrokerValuesLikeKafka: every key takes and refuses what Kafka takes and
// refuses, one at a time.
func TestBrokerValuesLikeKafka(t *testing.T) {
	base := "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n" +
		"listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\ncontroller.quorum.voters=1@localhost:9093"
	cases := 0
	for _, f := range goldenLines(t, "verdicts-4.4.0.tsv") {
		if f[0] != "broker" {
			continue
		}
		cases++
		text := unescape.Replace(f[2])
		given := Layer(properties(base), []Property{{Name: f[1], Value: text, Origin: FromFile}})
		_, _, err := Broker(given)
		var real []string
		if err != nil {
			for _, fault := range err.(Errors) {
				if !fault.Refused {
					real = append(real, fault.Text)
				}
			}
		}
		if (len(real) == 0) != (f[3] == "ok") && tooStrict(f[1], text) == "" {
			t.Errorf("%s=%q: %v, Kafka: %s", f[1], text, real, f[3])
		}
	}
	if cases < 5000 {
		t.Errorf("only %d cases", cases)
	}
}

// TestTopicValuesLikeKafka: topic keys likewise, and with Kafka's messages.
func TestTopicValuesLikeKafka(t *testing.T) {
	cases := 0
	for _, f := range goldenLines(t, "verdicts-4.4.0.tsv") {
		if f[0] != "topic" {
			continue
		}
		cases++
		text, want := unescape.Replace(f[2]), unescape.Replace(f[3])
		got := "ok"
		if err := ValidateTopic(map[string]string{f[1]: text}); err != nil {
			got = strings.TrimPrefix(err.Error(), "INVALID_CONFIG: ")
		}
		if got != want && !(want != "ok" && strings.HasPrefix(got, want+" (Ottla")) {
			if tooStrict(f[1], text) != "" {
				continue
			}
			t.Errorf("%s=%q:\n got %s\nwant %s", f[1], text, got, want)
		}
	}
	if cases < 500 {
		t.Errorf("only %d cases", cases)
	}
}
