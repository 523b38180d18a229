package metadata

import (
	"fmt"

	"ottla/protocol/schema"
)

// MetadataVersion is a level of the feature metadata.version: it decides which
// records a controller may write, and in which versions. The facts are those of
// Kafka 4.4.0's MetadataVersion. Ottla runs at MinMetadataVersion and above;
// the older levels are here because directories and Kafka's own nodes name them.
type MetadataVersion int16

// Levels with a meaning of their own.
const (
	OldestMetadataVersion MetadataVersion = 7  // 3.3-IV3, the oldest that 4.4.0 reads
	MinMetadataVersion    MetadataVersion = 21 // 3.9-IV0, the oldest that Ottla writes
	MaxMetadataVersion    MetadataVersion = 33 // 4.4-IV2, the newest that Ottla knows
)

// levelInfo is what is known of one level. A record type that is not named here
// is written in version 0 at every level.
type levelInfo struct {
	name             string // "4.0-IV1"
	metadataChanged  bool   // whether records differ from those of the level below
	registerBroker   int16
	partition        int16 // PartitionRecord and PartitionChangeRecord
	fetch            int16 // Fetch request between brokers
	listOffsets      int16 // ListOffsets request between brokers
	bumpsOnISRShrink bool  // whether a shrinking ISR raises the leader epoch
}

// levels begins at OldestMetadataVersion.
var levels = [...]levelInfo{
	{"3.3-IV3", true, 1, 0, 13, 7, true},
	{"3.4-IV0", true, 2, 0, 13, 7, true},
	{"3.5-IV0", false, 2, 0, 14, 8, true},
	{"3.5-IV1", false, 2, 0, 15, 8, true},
	{"3.5-IV2", true, 2, 0, 15, 8, true},
	{"3.6-IV0", false, 2, 0, 15, 8, false},
	{"3.6-IV1", true, 2, 0, 15, 8, false},
	{"3.6-IV2", true, 2, 0, 15, 8, false},
	{"3.7-IV0", true, 2, 0, 15, 8, false},
	{"3.7-IV1", false, 2, 0, 15, 8, false},
	{"3.7-IV2", true, 3, 1, 15, 8, false},
	{"3.7-IV3", false, 3, 1, 15, 8, false},
	{"3.7-IV4", false, 3, 1, 16, 8, false},
	{"3.8-IV0", false, 3, 1, 16, 8, false},
	{"3.9-IV0", false, 3, 1, 17, 9, false},
	{"4.0-IV0", false, 3, 1, 17, 9, false},
	{"4.0-IV1", true, 3, 2, 17, 9, false},
	{"4.0-IV2", false, 3, 2, 17, 9, false},
	{"4.0-IV3", false, 3, 2, 17, 10, false},
	{"4.1-IV0", false, 3, 2, 17, 10, false},
	{"4.1-IV1", false, 3, 2, 18, 10, false},
	{"4.2-IV0", false, 3, 2, 18, 10, false},
	{"4.2-IV1", false, 3, 2, 18, 11, false},
	{"4.3-IV0", true, 4, 2, 18, 11, false},
	{"4.4-IV0", false, 4, 2, 18, 11, false},
	{"4.4-IV1", true, 4, 2, 18, 11, false},
	{"4.4-IV2", true, 4, 2, 18, 11, false},
}

// Known tells whether 4.4.0 has the level.
func (v MetadataVersion) Known() bool {
	return v >= OldestMetadataVersion && v <= MaxMetadataVersion
}

// info of a level that is not known is that of the nearest one that is.
func (v MetadataVersion) info() levelInfo {
	return levels[min(max(v, OldestMetadataVersion), MaxMetadataVersion)-OldestMetadataVersion]
}

// String gives the level's name, as "4.4-IV2".
func (v MetadataVersion) String() string {
	if !v.Known() {
		return fmt.Sprintf("unknown metadata.version %d", int16(v))
	}
	return v.info().name
}

// Release gives the release of the level, as "4.4".
func (v MetadataVersion) Release() string { return v.info().name[:3] }

// ParseMetadataVersion reads a level's name ("4.4-IV2"), or a release ("4.4",
// also "4.4.0"), which is the last level of that release.
func ParseMetadataVersion(text string) (MetadataVersion, error) {
	for v := MaxMetadataVersion; v >= OldestMetadataVersion; v-- {
		release := v.Release()
		if text == v.String() || text == release || len(text) > len(release) && text[:len(release)+1] == release+"." {
			return v, nil
		}
	}
	return 0, fmt.Errorf("%q is not a metadata.version: the levels are %s to %s", text, OldestMetadataVersion, MaxMetadataVersion)
}

// RecordVersion is the version in which a controller at this level writes the
// record. BrokerRegistrationChangeRecord is written in the lowest version that
// holds what is set, as Kafka does.
func (v MetadataVersion) RecordVersion(record schema.MetadataRecord) int16 {
	switch record.(type) {
	case *schema.RegisterBrokerRecord:
		return v.info().registerBroker
	case *schema.PartitionRecord, *schema.PartitionChangeRecord:
		return v.info().partition
	case *schema.BrokerRegistrationChangeRecord:
		lowest, highest := record.Versions()
		for version := lowest; version < highest; version++ {
			if record.Check(version) == nil {
				return version
			}
		}
		return highest
	}
	return 0
}

// FetchVersion is the version of Fetch that brokers use among themselves.
func (v MetadataVersion) FetchVersion() int16 { return v.info().fetch }

// ListOffsetsVersion is the version of ListOffsets that brokers use among
// themselves.
func (v MetadataVersion) ListOffsetsVersion() int16 { return v.info().listOffsets }

// BumpsLeaderEpochOnISRShrink tells whether a shrinking ISR raises the leader
// epoch, as it did before 3.6.
func (v MetadataVersion) BumpsLeaderEpochOnISRShrink() bool { return v.info().bumpsOnISRShrink }

// SupportsScram tells whether SCRAM credentials can be written (KIP-900).
func (v MetadataVersion) SupportsScram() bool { return v >= 11 }

// SupportsTransactions tells whether metadata transactions can be written
// (KIP-868).
func (v MetadataVersion) SupportsTransactions() bool { return v >= 13 }

// SupportsDelegationTokens tells whether delegation tokens can be written.
func (v MetadataVersion) SupportsDelegationTokens() bool { return v >= 14 }

// SupportsControllerRegistration tells whether controllers register (KIP-919).
func (v MetadataVersion) SupportsControllerRegistration() bool { return v >= 15 }

// SupportsDirectories tells whether partitions name directories (KIP-858).
func (v MetadataVersion) SupportsDirectories() bool { return v >= 17 }

// SupportsELR tells whether partitions have eligible leader replicas (KIP-966),
// if eligible.leader.replicas.version is finalized too.
func (v MetadataVersion) SupportsELR() bool { return v >= 23 }

// SupportsCordonedDirectories tells whether brokers may cordon directories
// (KIP-1066).
func (v MetadataVersion) SupportsCordonedDirectories() bool { return v >= 30 }

// SupportsCIDRACLs tells whether the host of an ACL may be a network in CIDR
// notation.
func (v MetadataVersion) SupportsCIDRACLs() bool { return v >= 32 }

// SupportsControllerUnregistration tells whether controllers can be
// unregistered.
func (v MetadataVersion) SupportsControllerUnregistration() bool { return v >= 33 }

// MetadataChangedBetween tells whether records differ between two levels: going
// down over such a difference loses metadata.
func MetadataChangedBetween(a, b MetadataVersion) bool {
	low, high := min(a, b), max(a, b)
	for v := low + 1; v <= high; v++ {
		if v.info().metadataChanged {
			return true
		}
	}
	return false
}
