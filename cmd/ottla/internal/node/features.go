package node

import (
	"context"
	"log/slog"

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
}

// supportedRanges is ServedFeatures as registrations say it.
func supportedRanges() []metadata.SupportedRange {
	var ranges []metadata.SupportedRange
	for _, name := range []string{metadata.KRaftVersionFeature, metadata.MetadataVersionFeature} {
		ranges = append(ranges, metadata.SupportedRange{Name: name, Min: ServedFeatures[name].Min, Max: ServedFeatures[name].Max})
	}
	return ranges
}

// warnUnserved names, one line each, what a directory holds that this build
// keeps and does not serve.
func warnUnserved(image *metadata.Image, logger *slog.Logger) {
	for _, feature := range metadata.AllFeatures() {
		if level := image.Feature(feature.Name); level > ServedFeatures[feature.Name].Max {
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
	log.Clean: "clean", log.SameBoot: "the process died", log.OtherBoot: "unclean, or another boot",
}

// logReport says in one line a directory what its opening found.
func logReport(report store.Report, logger *slog.Logger) {
	for _, directory := range report.Directories {
		logger.Info("log directory opened", "directory", directory.Path, "lastStop", lastStop[directory.Trust], "partitions", directory.Logs,
			"repaired", len(directory.Repaired), "offline", len(directory.Damaged), "removed", len(directory.Removed))
		for _, damaged := range directory.Damaged {
			logger.Error("a partition is damaged and offline", "partition", damaged.Partition.String(), "error", damaged.Err)
		}
		for _, repaired := range directory.Repaired {
			logRepair(repaired, logger)
		}
		for _, aside := range directory.Aside {
			logger.Info("left alone", "directory", aside)
		}
		for _, unknown := range directory.Unknown {
			logger.Warn("not a partition, left alone", "directory", unknown)
		}
		for _, checkpoint := range directory.Checkpoints {
			logger.Warn("a checkpoint file was damaged and is taken as empty", "file", checkpoint)
		}
	}
}

// logRepair says what was done to a partition's files. What was made anew out of
// the records is no cause for alarm; what was cut off them is.
func logRepair(repaired store.PartitionReport, logger *slog.Logger) {
	done := repaired.Recovery
	level := slog.LevelInfo
	if done.BytesCut > 0 || done.SegmentsRemoved > 0 {
		level = slog.LevelWarn
	}
	logger.Log(context.Background(), level, "a partition was recovered", "partition", repaired.Partition.String(),
		"bytesCut", done.BytesCut, "segmentsRemoved", done.SegmentsRemoved, "segmentsScanned", done.SegmentsScanned,
		"indexesRebuilt", done.IndexesRebuilt, "snapshotsDropped", done.SnapshotsDropped, "epochsRebuilt", done.EpochsRebuilt,
		"strayFiles", done.StrayFiles)
}
