package main

import (
	"fmt"
	"slices"
	"strings"

	"ottla/compat/bench/latency"
	"ottla/compat/harness"
)

// level is how far apart two figures may lie and still count as the same.
const level = 0.05

// memoryLimitMB is what Ottla is held to under load.
const memoryLimitMB = 256

func (f figures) String() string {
	var parts []string
	for _, one := range f {
		parts = append(parts, one.name+" "+number(one.value))
	}
	return strings.Join(parts, ", ")
}

// number prints three or four digits that mean something.
func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// medians gives for each figure the median of the rounds.
func medians(rounds []figures) figures {
	if len(rounds) == 0 {
		return nil
	}
	out := slices.Clone(rounds[0])
	for i := range out {
		var values []float64
		for _, round := range rounds {
			values = append(values, round[i].value)
		}
		slices.Sort(values)
		out[i].value = values[len(values)/2]
		if len(values)%2 == 0 {
			out[i].value = (values[len(values)/2-1] + values[len(values)/2]) / 2
		}
	}
	return out
}

// verdict compares Ottla's figure with Apache Kafka's.
func verdict(ours, theirs figure) (ratio float64, word string) {
	if theirs.value == 0 {
		return 0, "level"
	}
	ratio = ours.value / theirs.value
	if ours.neutral {
		return ratio, ""
	}
	better := 1 / ratio
	if ours.higher {
		better = ratio
	}
	switch {
	case better > 1+level:
		return ratio, "ahead"
	case better < 1/(1+level):
		return ratio, "BEHIND"
	}
	return ratio, "level"
}

// report is the table of all lines.
func (b *bench) report() string {
	var out strings.Builder
	var behind []string
	peak := 0.0
	fmt.Fprintf(&out, "%-44s %-14s %10s %10s %7s\n", "median of "+fmt.Sprint(b.rounds)+" rounds (or as many)", "", "Ottla", "Kafka", "ratio")
	for _, l := range b.lines {
		name := l.name
		if n := len(l.results[b.targets[0]]); l.left == "" && n != b.rounds {
			name += fmt.Sprintf(" (%d)", n)
		}
		if l.left != "" {
			fmt.Fprintf(&out, "%-44s %s\n", name, l.left)
			continue
		}
		ours, theirs := medians(l.results[harness.Ottla]), medians(l.results[harness.Kafka])
		for i := range max(len(ours), len(theirs)) {
			one := slices.Concat(ours, theirs)[i]
			row := [4]string{"", "", "", ""}
			if ours != nil {
				row[0] = number(ours[i].value)
			}
			if theirs != nil {
				row[1] = number(theirs[i].value)
			}
			if ours != nil && theirs != nil {
				ratio, word := verdict(ours[i], theirs[i])
				row[2], row[3] = fmt.Sprintf("%.2f", ratio), word
				if word == "BEHIND" {
					behind = append(behind, l.name+": "+one.name)
				}
			}
			if one.name == peakName && ours != nil && !l.cluster {
				peak = max(peak, ours[i].value)
			}
			fmt.Fprintf(&out, "%-44s %-14s %10s %10s %7s %s\n", name, one.name, row[0], row[1], row[2], row[3])
			name = ""
		}
	}
	fmt.Fprintf(&out, "\nOttla's largest resident memory under load: %.0f MB (limit %d)\n", peak, memoryLimitMB)
	if len(behind) == 0 {
		out.WriteString("behind Apache Kafka on no line\n")
	} else {
		fmt.Fprintf(&out, "behind Apache Kafka by more than %.0f %%:\n  %s\n", level*100, strings.Join(behind, "\n  "))
	}
	return out.String()
}

// peakName is the figure of resident memory.
const peakName = "peak RSS MB"

func (u usage) peak() figure { return figure{name: peakName, value: u.peakMB} }

// quantiles are the three latencies that each line tells.
func quantiles(h *latency.Histogram) figures {
	return figures{
		{name: "p50 ms", value: h.Quantile(0.50)},
		{name: "p99 ms", value: h.Quantile(0.99)},
		{name: "p99.9 ms", value: h.Quantile(0.999)},
	}
}
