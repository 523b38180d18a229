package offline

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/store"
)

// most is how many names of a kind are printed.
const most = 5

// stopped says in words what the trust in a directory follows from.
var stopped = map[log.Trust]string{
	log.Clean: "stopped cleanly", log.SameBoot: "not stopped cleanly; the machine has run since, so nothing is lost",
	log.OtherBoot: "not stopped cleanly, or nobody knows; everything beyond the recovery points is checked at the start",
}

// Print says in words what was found, and whether it is safe to start; if not it ends with ErrNotSafe.
func (e *Examined) Print(w io.Writer) error {
	p := &report{w: w}
	for _, directory := range e.Directories {
		e.printDirectory(p, directory)
	}
	if e.Image != nil {
		e.printCluster(p)
		e.printKept(p)
	}
	reasons := e.unsafe()
	if len(reasons) > 0 {
		p.line("NOT safe to start:")
		for _, reason := range reasons {
			p.line("  - %s", reason)
		}
		return errors.Join(p.err, ErrNotSafe)
	}
	p.line("safe to start")
	return p.err
}

type report struct {
	w   io.Writer
	err error
}

func (p *report) line(format string, args ...any) {
	if _, err := fmt.Fprintf(p.w, format+"\n", args...); err != nil && p.err == nil {
		p.err = err
	}
}

func (e *Examined) printDirectory(p *report, d Looked) {
	p.line("%s", d.Path)
	switch {
	case errors.Is(d.Err, fs.ErrNotExist):
		p.line("  not formatted")
		return
	case d.Err != nil:
		p.line("  %v", d.Err)
		return
	}
	role := ""
	if d.Metadata {
		role = ", with the metadata log"
	}
	p.line("  meta.properties version 1: cluster %s, node %d, directory %s%s", d.Meta.ClusterID, d.Meta.NodeID, d.Meta.DirectoryID, role)
	names := count(len(d.Partitions), "partition", "partitions")
	for _, other := range []struct {
		n    int
		what string
	}{{d.Deleted, "being deleted"}, {d.Future, "being moved here"}, {d.Stray, "set aside"}} {
		if other.n > 0 {
			names += fmt.Sprintf(", %d %s", other.n, other.what)
		}
	}
	p.line("  %s", names)
	at := slices.IndexFunc(e.Report.Directories, func(r store.DirectoryReport) bool { return r.Path == d.Path })
	if at < 0 {
		return
	}
	opened := e.Report.Directories[at]
	p.line("  %s", stopped[opened.Trust])
	for _, list := range []struct {
		what  string
		names []string
	}{
		{"repaired by a start", partitionNames(opened.Repaired)},
		{"damaged", partitionNames(opened.Damaged)},
		{"no partition, left alone", opened.Unknown},
		{"checkpoint files that are damaged and taken as empty", opened.Checkpoints},
		{"moves that a start completes", opened.Promoted},
	} {
		if len(list.names) > 0 {
			p.line("  %s: %s", list.what, someOf(list.names))
		}
	}
	var strays []string
	for _, tp := range d.Partitions {
		if known := e.Image.Partition(tp); known == nil || !known.HasReplica(e.NodeID) {
			strays = append(strays, tp.String())
		}
	}
	if len(strays) > 0 {
		p.line("  not known to the cluster, a start sets them aside: %s", someOf(strays))
	}
}

func partitionNames(reports []store.PartitionReport) []string {
	var names []string
	for _, r := range reports {
		names = append(names, r.Partition.String())
	}
	return names
}

func (e *Examined) printCluster(p *report) {
	p.line("cluster")
	if e.Observes {
		p.line("  as this broker has last heard of it, up to offset %d of the metadata", e.Image.Provenance().Offset)
	}
	p.line("  metadata.version %s, kraft.version %d", e.Image.MetadataVersion(), e.KRaftVersion)
	features := e.Image.Features()
	delete(features, metadata.MetadataVersionFeature)
	delete(features, metadata.KRaftVersionFeature)
	for _, name := range featureNames(features) {
		p.line("  %s %d", name, features[name])
	}
	p.line("  voters %s", numbers(e.Voters))
	var brokers []protocol.NodeID
	for broker := range e.Image.Brokers() {
		brokers = append(brokers, broker.ID)
	}
	p.line("  registered brokers %s", numbers(brokers))
	p.line("  %s, %s", count(e.Image.TopicCount(), "topic", "topics"), count(e.Image.PartitionCount(), "partition", "partitions"))
}

// printKept names what stays in the directory and is not served.
func (e *Examined) printKept(p *report) {
	kept := e.kept()
	if len(kept) == 0 {
		return
	}
	p.line("kept as it is, and not served yet")
	for _, line := range kept {
		p.line("  %s", line)
	}
}

func (e *Examined) kept() []string {
	var lines []string
	features := e.Image.Features()
	for _, name := range featureNames(features) {
		if name != metadata.MetadataVersionFeature && features[name] > e.Served[name].Max {
			lines = append(lines, fmt.Sprintf("feature %s at level %d", name, features[name]))
		}
	}
	scram, tokens, subscriptions := 0, 0, 0
	for range e.Image.ScramCredentials() {
		scram++
	}
	for range e.Image.DelegationTokens() {
		tokens++
	}
	for resource := range e.Image.Configs() {
		if resource.Kind == metadata.ClientMetricsConfig {
			subscriptions++
		}
	}
	for _, held := range []struct {
		n         int
		one, many string
	}{
		{e.Image.ACLCount(), "ACL (everyone may do everything)", "ACLs (everyone may do everything)"},
		{scram, "SCRAM credential", "SCRAM credentials"},
		{e.Image.ClientQuotaCount(), "client quota", "client quotas"},
		{tokens, "delegation token", "delegation tokens"},
		{subscriptions, "client metrics subscription", "client metrics subscriptions"},
	} {
		if held.n > 0 {
			lines = append(lines, count(held.n, held.one, held.many))
		}
	}
	return append(lines, e.keptTopics()...)
}

// keptTopics names what lies in topics.
func (e *Examined) keptTopics() []string {
	var lines []string
	for _, group := range []struct {
		names     []string
		one, many string
	}{
		{e.Groups.Share, "share group", "share groups"},
		{e.Groups.Streams, "streams group", "streams groups"},
	} {
		if n := len(group.names); n > 0 {
			lines = append(lines, count(n, group.one, group.many)+": "+someOf(group.names))
		}
	}
	for _, topic := range []struct{ name, holds string }{
		{protocol.ShareGroupStateTopic, "how far share groups are"},
		{remoteLogMetadataTopic, "what lies in remote storage"},
	} {
		if e.Image.Topic(topic.name) != nil {
			lines = append(lines, fmt.Sprintf("%s, which says %s", topic.name, topic.holds))
		}
	}
	if tiered := tieredTopics(e.Image); len(tiered) > 0 {
		lines = append(lines, count(len(tiered), "topic", "topics")+" with segments in remote storage: "+someOf(tiered))
	}
	return lines
}

// remoteLogMetadataTopic is where Apache Kafka keeps by default what lies in remote storage (KIP-405).
const remoteLogMetadataTopic = "__remote_log_metadata"

// tieredTopics names the topics whose segments are moved to remote storage, sorted (remote.storage.enable).
func tieredTopics(image *metadata.Image) []string {
	var tiered []string
	for resource, values := range image.Configs() {
		if resource.Kind == metadata.TopicConfig && strings.EqualFold(strings.TrimSpace(values["remote.storage.enable"]), "true") {
			tiered = append(tiered, resource.Name)
		}
	}
	slices.Sort(tiered)
	return tiered
}

// RefuseTiered is why a node does not start on a directory with such topics, or nil. Apache Kafka says of a topic's remote segments
// which are its own by the leader epochs in the log directory; who does not know of them cuts those epochs off with the
// local segments, and it deletes what lies in remote storage.
func RefuseTiered(image *metadata.Image) error {
	tiered := tieredTopics(image)
	if len(tiered) == 0 {
		return nil
	}
	return fmt.Errorf("%s segments in remote storage (remote.storage.enable), which is not served, and Apache Kafka would delete them afterwards: %s",
		count(len(tiered), "topic has", "topics have"), someOf(tiered))
}

func count(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}

func someOf(names []string) string {
	slices.Sort(names)
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func numbers(ids []protocol.NodeID) string {
	slices.Sort(ids)
	var texts []string
	for _, id := range ids {
		texts = append(texts, fmt.Sprint(int32(id)))
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}

func featureNames(levels map[string]int16) []string { return slices.Sorted(maps.Keys(levels)) }
