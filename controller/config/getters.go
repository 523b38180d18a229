package config

import "fmt"

// get gives the value of a broker key; keys that no row has are a fault of the
// program.
func (c *BrokerConfig) get(name string) value {
	v, ok := c.values[name]
	if !ok {
		panic("config: no broker key is named " + name)
	}
	return v
}

// as gives a value as the type the caller wants; the zero value for null.
func as[T any](name string, v value) T {
	var zero T
	if v.parsed == nil {
		return zero
	}
	typed, ok := v.parsed.(T)
	if !ok {
		panic(fmt.Sprintf("config: %s is a %T, not a %T", name, v.parsed, zero))
	}
	return typed
}

// Bool, Int, Long, Double, String and List give the value of a broker key by
// name: the node's own setting, or the default, not what was changed at run
// time. They panic when the key is unknown or of another type, and give the
// zero value for null. Int serves short keys too, String class and password
// keys. Lists are shared: do not change them.
func (c *BrokerConfig) Bool(name string) bool { return as[bool](name, c.get(name)) }

// Int gives an int or short key; see Bool.
func (c *BrokerConfig) Int(name string) int32 { return int32(as[int64](name, c.get(name))) }

// Long gives a long, int or short key; see Bool.
func (c *BrokerConfig) Long(name string) int64 { return as[int64](name, c.get(name)) }

// Double gives a double key; see Bool.
func (c *BrokerConfig) Double(name string) float64 { return as[float64](name, c.get(name)) }

// String gives a string, class or password key; see Bool.
func (c *BrokerConfig) String(name string) string { return as[string](name, c.get(name)) }

// List gives a list key; see Bool.
func (c *BrokerConfig) List(name string) []string { return as[[]string](name, c.get(name)) }

// IsNull tells a key without value.
func (c *BrokerConfig) IsNull(name string) bool { return c.get(name).parsed == nil }

// Origin tells which layer the value of a key comes from.
func (c *BrokerConfig) Origin(name string) Origin { return c.given[name].Origin }

// Given gives the properties as they were given, sorted by name, secrets
// included.
func (c *BrokerConfig) Given() []Property { return sortedProperties(c.given) }

// ListenerInt gives an int key for one listener: listener.name.<listener>.<key>
// if that is set, else the key itself. The listener's name may be in any case.
func (c *BrokerConfig) ListenerInt(listener, key string) int32 {
	return int32(as[int64](key, c.listenerValue(listener, key)))
}

// ListenerString is ListenerInt for string, class and password keys.
func (c *BrokerConfig) ListenerString(listener, key string) string {
	return as[string](key, c.listenerValue(listener, key))
}

// ListenerList is ListenerInt for list keys.
func (c *BrokerConfig) ListenerList(listener, key string) []string {
	return as[[]string](key, c.listenerValue(listener, key))
}

func (c *BrokerConfig) listenerValue(listener, key string) value {
	if v, ok := c.values[listenerPrefix(listener)+key]; ok {
		return v
	}
	return c.get(key)
}
