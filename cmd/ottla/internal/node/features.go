package node

import (
	"log/slog"
	"maps"
	"slices"

	"ottla/cmd/ottla/internal/offline"
	"ottla/controller/cluster"
	"ottla/controller/metadata"
	"ottla/storage/log"
	"ottla/storage/store"
)

// oldestServed is the lowest metadata.version that this build writes records
// for: 3.9-IV0.
const oldestServed = 21

// ServedFeatures is what this build serves of each feature. What is not in it
// is neither claimed at registration nor told to clients, and what a directory
// has finalized of it is kept as it is.
var ServedFeatures = map[string]cluster.Range{
	metadata.MetadataVersionFeature: {Min: oldestServed, Max: int16(metadata.MaxMetadataVersion)},
	metadata.KRaftVersionFeature:    {Min: 0, Max: 1},
	metadata.GroupVersionFeature:    {Min: 0, Max: 1},

	metadata.TransactionVersionFeature: {Min: 0, Max: 2},
}

// DefaultFeatures are the levels with which a new cluster is formatted if nothing
// else is asked for: the highest that is served, of each feature that is not derived
// from something else.
func DefaultFeatures() []offline.Feature {
	var defaults []offline.Feature
	for _, feature := range metadata.AllFeatures() {
		if served, ok := ServedFeatures[feature.Name]; ok && feature.Name != metadata.KRaftVersionFeature {
			defaults = append(defaults, offline.Feature{Name: feature.Name, Level: served.Max})
		}
	}
	return defaults
}

// supportedRanges is what is served of the features, as registrations say it.
func supportedRanges(served map[string]cluster.Range) []metadata.SupportedRange {
	var ranges []metadata.SupportedRange
	for _, name := range slices.Sorted(maps.Keys(served)) {
		ranges = append(ranges, metadata.SupportedRange{Name: name, Min: served[name].Min, Max: served[name].Max})
	}
	return ranges
}

// warnUnserved names, one line each, what a directory holds that this build
// keeps and does not serve.
func warnUnserved(image *metadata.Image, features map[string]cluster.Range, logger *slog.Logger) {
	for _, feature := range metadata.AllFeatures() {
		if level := image.Feature(feature.Name); level > features[feature.Name].Max {
			logger.Warn("a finalized feature is kept and not served", "feature", feature.Name, "level", level)
		}
	}
	scram, tokens, subscriptions := 0, 0, 0
	for range image.ScramCredentials() {
		scram++
	}
	for range image.DelegationTokens() {
		tokens++
	}
	for resource := range image.Configs() {
		if resource.Kind == metadata.ClientMetricsConfig {
			subscriptions++
		}
	}
	for _, kept := range []struct {
		what  string
		count int
	}{
		{"ACLs", image.ACLCount()},
		{"SCRAM credentials", scram},
		{"client quotas", image.ClientQuotaCount()},
		{"delegation tokens", tokens},
		{"client metrics subscriptions", subscriptions},
	} {
		if kept.count > 0 {
			logger.Warn("what the directory holds of these is kept and not served", "what", kept.what, "count", kept.count)
		}
	}
}

// lastStop says in words what the trust in a directory follows from.
var lastStop = map[log.Trust]string{
	log.Clean: "clean", log.SameBoot: "the process died", log.OtherBoot: "not clean, and the machine may have stopped with it",
}

// logReport says in one line a directory what its opening found. What was done to
// single partitions, the store has said.
func (n *Node) logReport(report store.Report) {
	for _, directory := range report.Directories {
		before := lastStop[directory.Trust]
		if n.fresh {
			before = "none, it is new"
		}
		n.options.Logger.Info("log directory opened", "directory", directory.Path, "lastStop", before, "partitions", directory.Logs,
			"repaired", len(directory.Repaired), "offline", len(directory.Damaged), "removed", len(directory.Removed))
		for _, aside := range directory.Aside {
			n.options.Logger.Info("left alone", "directory", aside)
		}
		for _, unknown := range directory.Unknown {
			n.options.Logger.Warn("not a partition, left alone", "directory", unknown)
		}
		for _, checkpoint := range directory.Checkpoints {
			n.options.Logger.Warn("a checkpoint file was damaged and is taken as empty", "file", checkpoint)
		}
	}
}
