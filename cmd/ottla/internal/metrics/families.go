package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// family is one name of the page: what it means, and which labels its series have.
// One name may have two families that differ in their labels, as Kafka's counters
// of all topics and of one.
type family struct {
	name string
	kind prometheus.ValueType
	help string
	desc *prometheus.Desc
	also *family // the same value under a second name

	labels []string // sorted, as scrapers are used to
	order  []int    // of the values that put is given, in that order
}

// families lists all of them, for the test of the names.
var families []*family

func newFamily(kind prometheus.ValueType, name, help string, labels []string) *family {
	f := &family{name: name, kind: kind, help: help, desc: prometheus.NewDesc(name, help, labels, nil), labels: slices.Sorted(slices.Values(labels))}
	for _, label := range f.labels {
		f.order = append(f.order, slices.Index(labels, label))
	}
	families = append(families, f)
	return f
}

func gauge(name, help string, labels ...string) *family {
	return newFamily(prometheus.GaugeValue, name, help, labels)
}

func counter(name, help string, labels ...string) *family {
	return newFamily(prometheus.CounterValue, name, help, labels)
}

// untyped is for what is 1 and says something by its label.
func untyped(name, help string, labels ...string) *family {
	return newFamily(prometheus.UntypedValue, name, help, labels)
}

// count is the Count of an MBean: `name_count`, and `name_count_total` as the JMX
// exporter has it since 1.0.
func count(name, help string, labels ...string) *family {
	f := counter(name+"_count", help, labels...)
	f.also = counter(name+"_count_total", help, labels...)
	return f
}

// perTopic is a counter of all topics, and the same of each.
type perTopic struct{ all, one *family }

func topicCounter(name, help string) perTopic {
	return perTopic{all: counter(name, help), one: counter(name, help, "topic")}
}

// page is where a scrape's series go.
type page interface {
	put(f *family, value float64, labels ...string)
}

// channelPage hands them to a registry.
type channelPage chan<- prometheus.Metric

func (p channelPage) put(f *family, value float64, labels ...string) {
	for ; f != nil; f = f.also {
		metric, err := prometheus.NewConstMetric(f.desc, f.kind, value, labels...)
		if err != nil { // a name that is not UTF-8
			metric = prometheus.NewInvalidMetric(f.desc, err)
		}
		p <- metric
	}
}

// oneIf is a bool as a value.
func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
