package cluster

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// Kinds of updates of features (KIP-584).
const (
	featureUpgrade         int8 = 1
	featureSafeDowngrade   int8 = 2
	featureUnsafeDowngrade int8 = 3
)

// updateFeatures finalizes other levels: all that are asked for, or none.
func (c *Controller) updateFeatures(req *kmsg.UpdateFeaturesRequest) machine.Result {
	response := req.ResponseKind().(*kmsg.UpdateFeaturesResponse)
	f := featureUpdate{c: c, proposed: c.image.Features()}
	for _, asked := range req.FeatureUpdates {
		if err := f.update(asked.Feature, asked.MaxVersionLevel, asked.UpgradeType); err != nil {
			response.ErrorCode = int16(err.Code)
			response.ErrorMessage = kmsg.StringPtr("The update failed for all features since the following feature had an error: " + err.Message)
			return machine.Result{Reply: response}
		}
	}
	if req.ValidateOnly {
		f.records = nil
	}
	return c.result(response, f.records...)
}

// featureUpdate is an UpdateFeatures under way.
type featureUpdate struct {
	c        *Controller
	proposed map[string]int16 // as decided so far
	records  []schema.MetadataRecord
}

func (f *featureUpdate) update(name string, level int16, kind int8) *protocol.Error {
	refuse := func(format string, args ...any) *protocol.Error {
		return protocol.Errorf(protocol.InvalidUpdateVersion, "Invalid update version %d for feature %s. %s", level, name, fmt.Sprintf(format, args...))
	}
	current := f.c.featureLevel(name)
	switch reason := f.c.unsupported(name, level); {
	case kind < featureUpgrade || kind > featureUnsafeDowngrade:
		return refuse("The controller does not support the given upgrade type.")
	case level < 0:
		return refuse("A feature version cannot be less than 0.")
	case reason != "":
		return refuse("%s", reason)
	case level < current && kind == featureUpgrade:
		return refuse("Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade.")
	case level > current && kind != featureUpgrade:
		return refuse("Can't downgrade to a newer version.")
	}
	switch name {
	case metadata.MetadataVersionFeature:
		return f.updateMetadataVersion(metadata.MetadataVersion(current), metadata.MetadataVersion(level), kind)
	case metadata.KRaftVersionFeature:
		if level < current {
			return refuse("Can't downgrade the version of this feature.")
		}
		if level > current {
			return refuse("Upgrading it is not served yet.")
		}
		return nil
	}
	if err := f.dependencies(name, level); err != "" {
		return refuse("%s", err)
	}
	if name == metadata.ELRVersionFeature && level > 0 && current == 0 {
		f.shareMinISR()
	}
	f.finalize(name, level)
	return nil
}

func (f *featureUpdate) finalize(name string, level int16) {
	record := schema.NewFeatureLevelRecord()
	record.Name, record.FeatureLevel = name, level
	f.records = append(f.records, record)
	f.proposed[name] = level
}

func (f *featureUpdate) updateMetadataVersion(from, to metadata.MetadataVersion, kind int8) *protocol.Error {
	if to < from && metadata.MetadataChangedBetween(to, from) {
		reason := "Refusing to perform the requested downgrade because it might delete metadata information."
		if kind == featureUnsafeDowngrade {
			reason = "Unsafe metadata downgrade is not supported in this version."
		}
		return protocol.Errorf(protocol.InvalidUpdateVersion, "Unsupported metadata.version downgrade from %d to %d. %s", from, to, reason)
	}
	f.finalize(metadata.MetadataVersionFeature, int16(to))
	return nil
}

// dependencies tells why a level cannot be, "" if it can: what else is finalized,
// this request included, must go with it.
func (f *featureUpdate) dependencies(name string, level int16) string {
	feature, known := metadata.FindFeature(name)
	if !known {
		return fmt.Sprintf("Feature %s not found.", name)
	}
	if int(level) >= len(feature.Levels) {
		return fmt.Sprintf("No feature:%s with feature level %d", name, level)
	}
	if need := feature.Levels[level].MinMetadataVersion; f.proposed[metadata.MetadataVersionFeature] < int16(need) {
		return fmt.Sprintf("%s could not be set to %d because it depends on metadata.version level %d", name, level, int16(need))
	}
	return ""
}

// shareMinISR makes min.insync.replicas the cluster's affair, as eligible leader
// replicas need it.
func (f *featureUpdate) shareMinISR() {
	everyone := metadata.ConfigResource{Kind: metadata.BrokerConfig}
	if _, set := f.c.image.Config(metadata.BrokerConfig, "")[minISR]; !set {
		value := fmt.Sprint(f.c.options.Config.Int(minISR))
		f.records = append(f.records, setting(everyone, minISR, &value))
	}
	for resource, settings := range f.c.image.Configs() {
		if _, set := settings[minISR]; set && resource.Kind == metadata.BrokerConfig && resource.Name != "" {
			f.records = append(f.records, setting(resource, minISR, nil))
		}
	}
}

// featureLevel is what is finalized, or about to be.
func (c *Controller) featureLevel(name string) int16 {
	if name != metadata.KRaftVersionFeature {
		return c.image.Feature(name)
	}
	if c.options.KRaftVersion == nil {
		return 0
	}
	return c.options.KRaftVersion()
}

// unsupported tells why a level cannot be finalized for want of support, by this
// controller or by any other node; "" if all have it.
func (c *Controller) unsupported(name string, level int16) string {
	if reason := beyond(level, c.options.Features[name], fmt.Sprintf("Local controller %d", c.options.NodeID)); reason != "" {
		return reason
	}
	for broker := range c.image.Brokers() {
		if reason := beyond(level, rangeOf(broker.Features, name), fmt.Sprintf("Broker %d", broker.ID)); reason != "" {
			return reason
		}
	}
	for controller := range c.image.Controllers() {
		if controller.ID == c.options.NodeID {
			continue
		}
		if reason := beyond(level, rangeOf(controller.Features, name), fmt.Sprintf("Controller %d", controller.ID)); reason != "" {
			return reason
		}
	}
	return ""
}

// rangeOf finds what a node supports of a feature; nothing is level 0 only.
func rangeOf(supported []metadata.SupportedRange, name string) Range {
	for _, s := range supported {
		if s.Name == name {
			return Range{s.Min, s.Max}
		}
	}
	return Range{}
}

func beyond(level int16, has Range, who string) string {
	switch {
	case level >= has.Min && level <= has.Max:
		return ""
	case has.Max == 0:
		return who + " does not support this feature."
	default:
		return fmt.Sprintf("%s only supports versions %d-%d", who, has.Min, has.Max)
	}
}
