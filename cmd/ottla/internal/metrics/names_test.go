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

// others are names that look like Apache Kafka's and are not in its page under
// these rules: why.
var others = map[string]string{
	"kafka_network_requestmetrics_totaltimems_count":        "what exporters before 1.0 make of it",
	"kafka_server_group_coordinator_metrics_num_partitions": "Strimzi's rules leave group-coordinator-metrics out",

	"kafka_server_group_coordinator_metrics_group_count":          "the same",
	"kafka_server_group_coordinator_metrics_consumer_group_count": "the same",
}

// TestNamesOfApacheKafka: what is called like a metric of Apache Kafka is one, of the
// same type.
func TestNamesOfApacheKafka(t *testing.T) {
	text, err := os.ReadFile("testdata/apache-kafka-4.4.0-strimzi.txt")
	if err != nil {
		t.Fatal(err)
	}
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
		if ours || others[f.name] != "" {
			continue
		}
		if kind, found := known[f.name]; !found || kind != typeOf(f) {
			t.Errorf("%s is a %s here and %q there", f.name, typeOf(f), kind)
		}
	}
}
