package metrics

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// textFormat is the content type of what Page holds.
const textFormat = "text/plain; version=0.0.4; charset=utf-8"

// Page is a page of metrics in Prometheus's text format, in pieces to be written one
// after the other: one family each, in the order of the names.
type Page [][]byte

// textPage writes series as they come, each to the text of its name: a registry
// would keep an object for each, and for each label of it.
type textPage map[string]*[]byte

func newTextPage() textPage { return textPage{} }

func (p textPage) put(f *family, value float64, labels ...string) {
	for ; f != nil; f = f.also {
		text := p[f.name]
		if text == nil {
			text = &[]byte{}
			*text = f.appendHead(*text)
			p[f.name] = text
		}
		*text = f.appendSeries(*text, value, labels)
	}
}

// page gives the texts, which are complete.
func (p textPage) page() Page {
	names := make([]string, 0, len(p))
	for name := range p {
		names = append(names, name)
	}
	slices.Sort(names)
	page := make(Page, 0, len(names))
	for _, name := range names {
		page = append(page, *p[name])
	}
	return page
}

var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

func (f *family) appendHead(b []byte) []byte {
	b = append(b, "# HELP "+f.name+" "+helpEscapes.Replace(f.help)+"\n# TYPE "+f.name+" "...)
	switch f.kind {
	case prometheus.CounterValue:
		b = append(b, "counter\n"...)
	case prometheus.GaugeValue:
		b = append(b, "gauge\n"...)
	default:
		b = append(b, "untyped\n"...)
	}
	return b
}

func (f *family) appendSeries(b []byte, value float64, values []string) []byte {
	if len(values) != len(f.labels) {
		panic("metrics: a series of " + f.name + " has another number of labels than its family")
	}
	b = append(b, f.name...)
	for i, label := range f.labels {
		separator := byte(',')
		if i == 0 {
			separator = '{'
		}
		b = append(append(b, separator), label...)
		b = append(b, `="`...)
		b = appendLabel(b, values[f.order[i]])
		b = append(b, '"')
	}
	if len(f.labels) > 0 {
		b = append(b, '}')
	}
	return append(appendValue(append(b, ' '), value), '\n')
}

func appendLabel(b []byte, value string) []byte {
	if strings.ContainsAny(value, "\\\n\"") {
		value = labelEscapes.Replace(value)
	}
	return append(b, strings.ToValidUTF8(value, "\uFFFD")...)
}

func appendValue(b []byte, value float64) []byte {
	switch {
	case math.IsInf(value, 1):
		return append(b, "+Inf"...)
	case math.IsInf(value, -1):
		return append(b, "-Inf"...)
	}
	return strconv.AppendFloat(b, value, 'g', -1, 64) // NaN too
}
