package offline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ottla/controller/metadata"
)

// Feature is a feature with its level, 0 being off.
type Feature struct {
	Name  string
	Level int16
}

// ParseFeature reads the value of --feature: name=level.
func ParseFeature(text string) (Feature, error) {
	name, number, ok := strings.Cut(text, "=")
	level, err := strconv.ParseInt(strings.TrimSpace(number), 10, 16)
	if !ok || err != nil {
		return Feature{}, fmt.Errorf("%q is not of the form feature=level", text)
	}
	return Feature{strings.TrimSpace(name), int16(level)}, nil
}

// featureLevels is what a format finalizes.
type featureLevels struct {
	version metadata.MetadataVersion
	kraft   int16
	others  []Feature // above level 0, by name
}

// levels decides which features are finalized at which level (Formatter.calculateEffectiveFeatureLevels).
func (o *FormatOptions) levels() (featureLevels, error) {
	asked := map[string]int16{}
	for _, f := range o.Features {
		asked[f.Name] = f.Level
	}
	version, err := o.release(asked)
	if err != nil {
		return featureLevels{}, err
	}
	kraft, err := o.kraftVersion(asked)
	if err != nil {
		return featureLevels{}, err
	}
	all := map[string]int16{metadata.MetadataVersionFeature: int16(version), metadata.KRaftVersionFeature: kraft}
	for name, level := range asked {
		all[name] = level
	}
	for _, f := range o.DefaultFeatures {
		if _, named := all[f.Name]; named {
			continue
		}
		known, ok := metadata.FindFeature(f.Name)
		if !ok {
			return featureLevels{}, fmt.Errorf("there is no feature %q", f.Name)
		}
		all[f.Name] = min(f.Level, known.Default(version))
	}
	if err := metadata.ValidateFeatures(all); err != nil {
		return featureLevels{}, err
	}
	found := featureLevels{version: version, kraft: kraft}
	for name, level := range all {
		if level > 0 && name != metadata.MetadataVersionFeature && name != metadata.KRaftVersionFeature {
			found.others = append(found.others, Feature{name, level})
		}
	}
	slices.SortFunc(found.others, func(a, b Feature) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

func (o *FormatOptions) release(asked map[string]int16) (metadata.MetadataVersion, error) {
	version := metadata.MaxMetadataVersion
	level, named := asked[metadata.MetadataVersionFeature]
	switch {
	case named && o.ReleaseVersion != "":
		return 0, fmt.Errorf("--release-version and --feature metadata.version=%d say the same thing: use the first", level)
	case named:
		version = metadata.MetadataVersion(level)
	case o.ReleaseVersion != "":
		var err error
		if version, err = metadata.ParseMetadataVersion(o.ReleaseVersion); err != nil {
			return 0, err
		}
	}
	if !version.Known() || version < metadata.MinMetadataVersion {
		return 0, fmt.Errorf("a cluster cannot be started at metadata.version %s: the levels are %s (%d) to %s (%d)", version,
			metadata.MinMetadataVersion, int16(metadata.MinMetadataVersion), metadata.MaxMetadataVersion, int16(metadata.MaxMetadataVersion))
	}
	return version, nil
}

func (o *FormatOptions) kraftVersion(asked map[string]int16) (int16, error) {
	level, named := asked[metadata.KRaftVersionFeature]
	switch dynamic := o.dynamic(); {
	case !named && dynamic:
		return 1, nil
	case !named:
		return 0, nil
	case dynamic && level == 0:
		return 0, fmt.Errorf("kraft.version 0 knows no dynamic voters: leave out --feature kraft.version=0")
	case !dynamic && level != 0:
		return 0, fmt.Errorf("kraft.version %d needs dynamic voters: leave out controller.quorum.voters and use --standalone, "+
			"--initial-controllers or --no-initial-controllers", level)
	default:
		return level, nil
	}
}
