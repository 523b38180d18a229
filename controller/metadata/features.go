package metadata

import (
	"fmt"
)

// Names of the features that 4.4.0 has.
const (
	MetadataVersionFeature    = "metadata.version"
	KRaftVersionFeature       = "kraft.version" // kept in control records, not in FeatureLevelRecords
	TransactionVersionFeature = "transaction.version"
	GroupVersionFeature       = "group.version"
	ELRVersionFeature         = "eligible.leader.replicas.version"
	ShareVersionFeature       = "share.version"
	StreamsVersionFeature     = "streams.version"
)

// Feature is one of Kafka's features beside metadata.version: which levels
// 4.4.0 has, and what each asks for. The facts are those of its class Feature.
type Feature struct {
	Name   string
	Levels []FeatureLevel // by level, from 0
}

// FeatureLevel is one level of a feature.
type FeatureLevel struct {
	// Bootstrap is the metadata.version from which on a new cluster is
	// formatted with at least this level. It is a default and no condition.
	Bootstrap MetadataVersion
	// MinMetadataVersion is what metadata.version must be at least for the
	// level to be finalized; 0: anything.
	MinMetadataVersion MetadataVersion
}

// features is in the order of Kafka's own table.
var features = []Feature{
	{KRaftVersionFeature, []FeatureLevel{{7, 0}, {21, 0}}},
	{TransactionVersionFeature, []FeatureLevel{{7, 0}, {24, 0}, {24, 0}}},
	{GroupVersionFeature, []FeatureLevel{{7, 0}, {22, 0}}},
	{ELRVersionFeature, []FeatureLevel{{7, 0}, {26, 23}}},
	{ShareVersionFeature, []FeatureLevel{{7, 0}, {28, 0}, {31, 0}}},
	{StreamsVersionFeature, []FeatureLevel{{7, 0}, {29, 0}}},
}

// AllFeatures gives every feature but metadata.version.
func AllFeatures() []Feature { return features }

// FindFeature finds a feature by name.
func FindFeature(name string) (Feature, bool) {
	for _, feature := range features {
		if feature.Name == name {
			return feature, true
		}
	}
	return Feature{}, false
}

// Max is the highest level that 4.4.0 has; the lowest is always 0.
func (f Feature) Max() int16 { return int16(len(f.Levels) - 1) }

// Default is the level with which a new cluster at the metadata.version given
// is formatted.
func (f Feature) Default(version MetadataVersion) int16 {
	for level := f.Max(); level > 0; level-- {
		if version >= f.Levels[level].Bootstrap {
			return level
		}
	}
	return 0
}

// Validate tells whether a level exists and may be finalized at the
// metadata.version given.
func (f Feature) Validate(level int16, version MetadataVersion) error {
	if level < 0 || level > f.Max() {
		return fmt.Errorf("%s has no level %d: it goes from 0 to %d", f.Name, level, f.Max())
	}
	if need := f.Levels[level].MinMetadataVersion; version < need {
		return fmt.Errorf("%s level %d needs metadata.version %s (level %d) or above, and it is %s", f.Name, level, need, int16(need), version)
	}
	return nil
}

// ValidateFeatures checks a whole set of finalized levels, metadata.version
// among them, for levels that exist and go together.
func ValidateFeatures(finalized map[string]int16) error {
	version := MetadataVersion(finalized[MetadataVersionFeature])
	if !version.Known() {
		return fmt.Errorf("metadata.version has no level %d: it goes from %d to %d", int16(version), OldestMetadataVersion, MaxMetadataVersion)
	}
	for _, feature := range features {
		if err := feature.Validate(finalized[feature.Name], version); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(finalized) {
		if _, ok := FindFeature(name); !ok && name != MetadataVersionFeature {
			return fmt.Errorf("there is no feature %q", name)
		}
	}
	return nil
}
