package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/viper"

	"ottla/controller/config"
	"ottla/storage/props"
)

// loadSettings reads a node's properties: overrides (key=value) over the
// environment (OTTLA_…) over the file at path, or over the built-in ones where
// path is empty. It checks nothing but the form; config.Broker does the rest.
func loadSettings(path string, overrides, environ []string) ([]config.Property, error) {
	bottom := config.Default()
	if path != "" {
		var err error
		if bottom, err = readProperties(path); err != nil {
			return nil, err
		}
	}
	top, err := config.FromOverrides(overrides)
	if err != nil {
		return nil, err
	}
	return layerSettings(bottom, config.FromEnvironment(environ), top), nil
}

// readProperties reads a file of Java properties.
func readProperties(path string) ([]config.Property, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the properties file cannot be read: %w", err)
	}
	parsed, err := props.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the properties file %s is not well formed: %w", path, err)
	}
	var all []config.Property
	for _, entry := range parsed.Entries() {
		all = append(all, config.Property{
			Name: entry.Key, Value: entry.Value, Origin: config.FromFile,
			Where: fmt.Sprintf("%s line %d", path, entry.Line),
		})
	}
	return all, nil
}

// layerSettings lets viper decide which layer's value counts: of its own
// layers, the file is the defaults, the environment the configuration, and
// overrides the values set by hand. Viper splits keys at a delimiter and folds
// their case; Kafka's keys have dots and tell cases apart, so the delimiter is
// one that no property has, and capitals are marked.
func layerSettings(file, environment, overrides []config.Property) []config.Property {
	v := viper.NewWithOptions(viper.KeyDelimiter("\x00"))
	layers := [][]config.Property{file, environment, overrides}
	for at, layer := range layers {
		for _, property := range layer {
			switch key := viperKey(property.Name); at {
			case 0:
				v.SetDefault(key, property)
			case 1:
				// The map has one key, a string: merging cannot fail.
				_ = v.MergeConfigMap(map[string]any{key: property})
			default:
				v.Set(key, property)
			}
		}
	}
	var chosen []config.Property
	for _, key := range v.AllKeys() {
		chosen = append(chosen, v.Get(key).(config.Property))
	}
	return config.Layer(chosen)
}

// viperKey marks capitals, so that viper's folding loses nothing.
func viperKey(name string) string {
	var key strings.Builder
	for _, c := range name {
		if lower := strings.ToLower(string(c)); lower != string(c) {
			key.WriteString("\x01" + lower)
			continue
		}
		key.WriteRune(c)
	}
	return key.String()
}
