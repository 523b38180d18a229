package metadata

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"ottla/protocol/schema"
)

// Kinds of resources that have configs.
const (
	TopicConfig         int8 = 2
	BrokerConfig        int8 = 4 // the name is the broker's id; "" is the default of all
	ClientMetricsConfig int8 = 16
	GroupConfig         int8 = 32
)

// ConfigResource names what a config is set on.
type ConfigResource struct {
	Kind int8
	Name string
}

func (r ConfigResource) compare(other ConfigResource) int {
	return cmp.Or(cmp.Compare(r.Kind, other.Kind), cmp.Compare(r.Name, other.Name))
}

// resourceConfig is what is set on one resource: the records, sorted by key,
// and the same as a map, made once for all who ask.
type resourceConfig struct {
	records []*schema.ConfigRecord
	values  map[string]string
}

// Config gives what is set on a resource, by key; nil if nothing is. The map is
// shared: it must not be written to.
func (i *Image) Config(kind int8, name string) map[string]string {
	if config, ok := i.configs.Get(ConfigResource{kind, name}); ok {
		return config.values
	}
	return nil
}

// Configs goes through all resources that have configs, by kind and name.
func (i *Image) Configs() iter.Seq2[ConfigResource, map[string]string] {
	return func(yield func(ConfigResource, map[string]string) bool) {
		for resource, config := range i.configs.All() {
			if !yield(resource, config.values) {
				return
			}
		}
	}
}

// with is the config with one record more, or one key less if the record's
// value is null. What has no keys left is nil.
func (c *resourceConfig) with(record *schema.ConfigRecord) *resourceConfig {
	var records []*schema.ConfigRecord
	if c != nil {
		records = slices.Clone(c.records)
	}
	at, found := slices.BinarySearchFunc(records, record.Name, func(r *schema.ConfigRecord, name string) int {
		return strings.Compare(r.Name, name)
	})
	switch {
	case record.Value == nil && found:
		records = slices.Delete(records, at, at+1)
	case record.Value == nil:
	case found:
		records[at] = record
	default:
		records = slices.Insert(records, at, record)
	}
	if len(records) == 0 {
		return nil
	}
	values := make(map[string]string, len(records))
	for _, r := range records {
		values[r.Name] = *r.Value
	}
	return &resourceConfig{records, values}
}
