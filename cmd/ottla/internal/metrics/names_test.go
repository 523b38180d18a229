package metrics

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var update = flag.Bool("update", false, "write testdata/names.txt anew")

func typeOf(f *family) string {
	switch f.kind {
	case prometheus.CounterValue:
		return "counter"
	case prometheus.GaugeValue:
		return "gauge"
	}
	return "untyped"
}

// labelsOf reads the labels out of a description.
func labelsOf(f *family) string {
	_, labels, _ := strings.Cut(f.desc.String(), "variableLabels: ")
	return strings.TrimSuffix(labels, "}")
}

// TestNames: dashboards and alerts hang on the names, so a change shows.
func TestNames(t *testing.T) {
	var lines []string
	for _, f := range families {
		lines = append(lines, fmt.Sprintf("%s %s %s\n", f.name, typeOf(f), labelsOf(f)))
	}
	slices.Sort(lines)
	got := strings.Join(lines, "")
	if *update {
		if err := os.WriteFile("testdata/names.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the names have changed:\n%s", got)
	}
}

// others are names that look like Apache Kafka's and are in neither of its pages: why.
var others = map[string]string{
	"kafka_network_requestmetrics_totaltimems_count": "what exporters before 1.0 make of it",
	"kafka_server_fetcherlagmetrics_consumerlag":     "of followers: the page is that of a node which is alone",
}

// TestNamesOfApacheKafka: what is called like a metric of Apache Kafka is one, of the
// same type.
func TestNamesOfApacheKafka(t *testing.T) {
	text, err := os.ReadFile("testdata/apache-kafka-4.4.0-strimzi.txt")
	if err != nil {
		t.Fatal(err)
	}
	coordinators := coordinatorNames(t)
	known := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		known[name] = kind
	}
	for _, f := range families {
		ours := true
		for _, prefix := range []string{"kafka_cluster_", "kafka_controller_", "kafka_log_", "kafka_network_", "kafka_server_"} {
			ours = ours && !strings.HasPrefix(f.name, prefix)
		}
		if _, found := coordinators[strings.TrimSuffix(f.name, "_total")]; ours || found || others[f.name] != "" {
			continue
		}
		if kind, found := known[f.name]; !found || kind != typeOf(f) {
			t.Errorf("%s is a %s here and %q there", f.name, typeOf(f), kind)
		}
	}
}

// coordinatorNames are the names of Apache Kafka's MBeans of coordinators, with their labels. Strimzi's rules leave most of them out;
// these are as jmx_exporter spells them by itself.
func coordinatorNames(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/apache-kafka-4.4.0-coordinators.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, labels, _ := strings.Cut(strings.TrimSpace(line), " ")
		names[name] = labels
	}
	return names
}

// leftOut are those that are not told here, by their beginning: why.
var leftOut = []struct{ begins, why string }{
	{"kafka_server_group_coordinator_metrics_share_", "share groups are not built yet"},
	{"kafka_server_group_coordinator_metrics_streams_", "streams groups are not built yet"},
	{"kafka_server_group_coordinator_metrics_background_", "there is no background executor: regular expressions are looked up at once"},
	{"kafka_server_group_coordinator_metrics_batch_", "batches do not linger; what waits shares one (controller/shard)"},
	{"kafka_server_group_coordinator_metrics_event_", "there is no event queue with threads: who finds a shard idle works it"},
	{"kafka_server_group_coordinator_metrics_thread_", "the same"},
	{"kafka_server_group_coordinator_metrics_offset_", "commits, deletions and expirations of offsets are not counted yet"},
	{"kafka_server_group_coordinator_metrics_group_completed_", "rebalances are not counted yet"},
	{"kafka_server_group_coordinator_metrics_consumer_group_rebalance_", "the same"},
	{"kafka_server_addpartitionstotxnmanager_verificationtimems", "the broker's core reads no clock when the answer comes"},
	{"kafka_server_replicamanager_produceridcount", "the producers of a partition are behind its log's lock"},
}

// TestNamesOfCoordinators: each name of Apache Kafka's coordinators is told, with the same labels, or left out for a reason; and what
// is called like them is one of them.
func TestNamesOfCoordinators(t *testing.T) {
	want := coordinatorNames(t)
	here := map[string]bool{}
	for _, f := range families {
		name := strings.TrimSuffix(f.name, "_total")
		labels, known := want[name]
		alike := strings.HasPrefix(name, "kafka_coordinator_") || strings.Contains(name, "_coordinator_metrics_") && strings.HasPrefix(name, "kafka_server_")
		switch {
		case known && labels != "{"+strings.Trim(labelsOf(f), "[]{}")+"}":
			t.Errorf("%s has the labels %s here and %s there", f.name, labelsOf(f), labels)
		case !known && alike:
			t.Errorf("Apache Kafka has no %s", f.name)
		}
		here[name] = true
	}
	for name := range want {
		out := slices.ContainsFunc(leftOut, func(l struct{ begins, why string }) bool { return strings.HasPrefix(name, l.begins) })
		if !here[name] && !out {
			t.Errorf("%s is neither told nor left out for a reason", name)
		}
	}
	for _, l := range leftOut {
		found := false
		for name := range want {
			found = found || strings.HasPrefix(name, l.begins) && !here[name]
		}
		if !found {
			t.Errorf("nothing that begins with %s is left out any more", l.begins)
		}
	}
}
