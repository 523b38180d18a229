package api

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/schema"
)

func resource(kind kmsg.ConfigResourceType, name string, keys ...string) kmsg.DescribeConfigsRequestResource {
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kind, name, keys
	return r
}

func configsRequest(version int16, resources ...kmsg.DescribeConfigsRequestResource) *kmsg.DescribeConfigsRequest {
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version, req.Resources = version, resources
	return req
}

const (
	ofTopic  = kmsg.ConfigResourceTypeTopic
	ofBroker = kmsg.ConfigResourceTypeBroker
	ofLogger = kmsg.ConfigResourceTypeBrokerLogger
)

// setConfig writes a config record, as IncrementalAlterConfigs will.
func (f *testCluster) setConfig(kind kmsg.ConfigResourceType, name, key, value string) {
	f.t.Helper()
	record := schema.NewConfigRecord()
	record.ResourceType, record.ResourceName, record.Name, record.Value = int8(kind), name, key, &value
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apply(machine.Result{Records: []machine.Record{{Value: schema.EncodeMetadata(record, 0)}}})
}

// Item 33: values with their sources; synonyms, types and documentation where the
// version has them and the request asks for them.
func TestDescribeConfigsOfATopic(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	f.create(newTopic("a", 1, 1, "retention.ms", "1000"))
	for _, listener := range []string{plain, controller} {
		for version := int16(1); version <= 4; version++ {
			for _, full := range []bool{false, true} {
				req := configsRequest(version, resource(ofTopic, "a", "retention.ms", "cleanup.policy", "no.such"))
				req.IncludeSynonyms, req.IncludeDocumentation = full, full
				resp := askOn[*kmsg.DescribeConfigsResponse](f, listener, req)
				if len(resp.Resources) != 1 || resp.Resources[0].ErrorCode != 0 || resp.Resources[0].ErrorMessage == nil || *resp.Resources[0].ErrorMessage != "" || len(resp.Resources[0].Configs) != 2 {
					t.Fatalf("%s version %d: %+v", listener, version, resp)
				}
				policy, retention := resp.Resources[0].Configs[0], resp.Resources[0].Configs[1]
				if policy.Name != "cleanup.policy" || deref(policy.Value) != "delete" || policy.Source != kmsg.ConfigSourceDefaultConfig || policy.ReadOnly || policy.IsSensitive {
					t.Errorf("version %d: %+v", version, policy)
				}
				if retention.Name != "retention.ms" || deref(retention.Value) != "1000" || retention.Source != kmsg.ConfigSourceDynamicTopicConfig {
					t.Errorf("version %d: %+v", version, retention)
				}
				if version >= 3 && (policy.ConfigType != kmsg.ConfigTypeList || retention.ConfigType != kmsg.ConfigTypeLong) {
					t.Errorf("version %d: types %v and %v", version, policy.ConfigType, retention.ConfigType)
				}
				if documented := policy.Documentation != nil && *policy.Documentation != ""; documented != (full && version >= 3) {
					t.Errorf("version %d, asked %v: documentation %v", version, full, documented)
				}
				if !full && len(policy.ConfigSynonyms) != 0 || full && (len(policy.ConfigSynonyms) != 1 || policy.ConfigSynonyms[0].Name != "log.cleanup.policy") {
					t.Errorf("version %d, asked %v: synonyms %+v", version, full, policy.ConfigSynonyms)
				}
			}
		}
	}
	for _, keys := range [][]string{nil, {}} {
		if resp := ask[*kmsg.DescribeConfigsResponse](f, configsRequest(4, resource(ofTopic, "a", keys...))); len(resp.Resources[0].Configs) != 37 {
			t.Errorf("keys %#v: %d configs", keys, len(resp.Resources[0].Configs))
		}
	}
}

func TestDescribeConfigsOfABroker(t *testing.T) {
	f := newTestCluster(t, nil, "num.partitions=2")
	f.join(1)
	f.create(newTopic("a", 1, 1))
	f.setConfig(ofBroker, "", "message.max.bytes", "2000")
	f.setConfig(ofBroker, "1", "log.retention.ms", "3000")
	for _, listener := range []string{plain, controller} {
		for _, name := range []string{"1", "01", "+1"} { // as Java's parser of integers
			resp := askOn[*kmsg.DescribeConfigsResponse](f, listener, configsRequest(4, resource(ofBroker, name, "num.partitions", "message.max.bytes", "log.retention.ms")))
			got := resp.Resources[0]
			if got.ErrorCode != 0 || got.ResourceName != name || len(got.Configs) != 3 {
				t.Fatalf("%s %s: %+v", listener, name, got)
			}
			for i, want := range []struct {
				name, value string
				source      kmsg.ConfigSource
				readOnly    bool
			}{
				{"log.retention.ms", "3000", kmsg.ConfigSourceDynamicBrokerConfig, false},
				{"message.max.bytes", "2000", kmsg.ConfigSourceDynamicDefaultBrokerConfig, false},
				{"num.partitions", "2", kmsg.ConfigSourceStaticBrokerConfig, true},
			} {
				if e := got.Configs[i]; e.Name != want.name || deref(e.Value) != want.value || e.Source != want.source || e.ReadOnly != want.readOnly {
					t.Errorf("%s: %+v", listener, e)
				}
			}
		}
		defaults := askOn[*kmsg.DescribeConfigsResponse](f, listener, configsRequest(4, resource(ofBroker, ""))).Resources[0]
		found := false
		for _, e := range defaults.Configs {
			found = found || e.Name == "message.max.bytes" && deref(e.Value) == "2000" && e.Source == kmsg.ConfigSourceDynamicDefaultBrokerConfig
		}
		if defaults.ErrorCode != 0 || !found || len(defaults.Configs) > 2 {
			t.Errorf("%s: the defaults of all brokers: %+v", listener, defaults)
		}
		if all := askOn[*kmsg.DescribeConfigsResponse](f, listener, configsRequest(4, resource(ofBroker, "1"))).Resources[0]; len(all.Configs) < 340 {
			t.Errorf("%s: %d configs", listener, len(all.Configs))
		}
	}
	topic := ask[*kmsg.DescribeConfigsResponse](f, configsRequest(4, resource(ofTopic, "a", "max.message.bytes", "retention.ms"))).Resources[0].Configs
	if deref(topic[0].Value) != "2000" || topic[0].Source != kmsg.ConfigSourceDynamicDefaultBrokerConfig ||
		deref(topic[1].Value) != "3000" || topic[1].Source != kmsg.ConfigSourceDynamicBrokerConfig {
		t.Errorf("what a topic takes over: %+v", topic)
	}
}

// The codes and sentences of 4.4.0.
func TestDescribeConfigsRefusals(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	for _, c := range []struct {
		resource kmsg.DescribeConfigsRequestResource
		code     protocol.ErrorCode
		text     string
	}{
		{resource(ofTopic, "nope"), protocol.UnknownTopicOrPartition, ""},
		{resource(ofTopic, "a/b"), protocol.InvalidTopicException, "Topic name is invalid: 'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"},
		{resource(ofTopic, ""), protocol.InvalidTopicException, "Topic name is invalid: the empty string is not allowed"},
		{resource(ofBroker, "2"), protocol.InvalidRequest, "Unexpected broker id, expected 1 or empty string, but received 2"},
		{resource(ofBroker, "-1"), protocol.InvalidRequest, "Unexpected broker id, expected 1 or empty string, but received -1"},
		{resource(ofBroker, "x"), protocol.InvalidRequest, "Broker id must be an integer, but it is: x"},
		{resource(ofBroker, "99999999999"), protocol.InvalidRequest, "Broker id must be an integer, but it is: 99999999999"},
		{resource(ofLogger, ""), protocol.InvalidRequest, "Broker id must not be empty"},
		{resource(ofLogger, "2"), protocol.InvalidRequest, "Unexpected broker id, expected 1 but received 2"},
		{resource(ofLogger, "1"), protocol.None, ""},
		{resource(groupResource, ""), protocol.InvalidRequest, "Group name must not be empty"},
		{resource(clientMetricsResource, ""), protocol.InvalidRequest, "Client metrics subscription name must not be empty"},
	} {
		got := ask[*kmsg.DescribeConfigsResponse](f, configsRequest(4, c.resource)).Resources[0]
		if protocol.ErrorCode(got.ErrorCode) != c.code || got.ErrorMessage == nil || *got.ErrorMessage != c.text || len(got.Configs) != 0 ||
			got.ResourceType != c.resource.ResourceType || got.ResourceName != c.resource.ResourceName {
			t.Errorf("%v %q: %+v %q", c.resource.ResourceType, c.resource.ResourceName, got, deref(got.ErrorMessage))
		}
	}
	// A kind that there is not spoils the whole request.
	for _, kind := range []kmsg.ConfigResourceType{0, 1, 3, 99} {
		resp := ask[*kmsg.DescribeConfigsResponse](f, configsRequest(4, resource(ofBroker, "1"), resource(kind, "x")))
		for i, got := range resp.Resources {
			if protocol.ErrorCode(got.ErrorCode) != protocol.InvalidRequest || deref(got.ErrorMessage) != sentences[protocol.InvalidRequest] ||
				i == 0 && got.ResourceType != ofBroker || i == 1 && got.ResourceType != kmsg.ConfigResourceTypeUnknown {
				t.Errorf("kind %d: %+v", kind, got)
			}
		}
		if len(resp.Resources) != 2 {
			t.Errorf("kind %d: %d answers", kind, len(resp.Resources))
		}
	}
}

// A resource may be named several times, as with 4.4.0, but not without end.
func TestDescribeConfigsRepeated(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	f.create(newTopic("a", 1, 1))
	req := configsRequest(4)
	for i := range maxMentions + 2 {
		broker := []string{"1", "01", "+1", ""}[i%4]
		req.Resources = append(req.Resources, resource(ofTopic, "a", "retention.ms"), resource(ofBroker, broker, "num.partitions", "min.insync.replicas"))
	}
	resp := ask[*kmsg.DescribeConfigsResponse](f, req)
	if len(resp.Resources) != len(req.Resources) {
		t.Fatalf("%d answers to %d resources", len(resp.Resources), len(req.Resources))
	}
	for i, got := range resp.Resources {
		want := protocol.None
		if i >= 2*maxMentions {
			want = protocol.InvalidRequest
		}
		if protocol.ErrorCode(got.ErrorCode) != want || got.ResourceName != req.Resources[i].ResourceName {
			t.Errorf("%d: %+v", i, got)
		}
	}
}

// Item 41: without the right nothing is told, not even that something is not there;
// what is refused stands last.
func TestDescribeConfigsAuthorization(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	f.create(newTopic("readcfg", 1, 1), newTopic("hidden", 1, 1))
	f.handler.node.Authorize = allow("DESCRIBE_CONFIGS readcfg", "DESCRIBE hidden")
	resp := ask[*kmsg.DescribeConfigsResponse](f, configsRequest(4, resource(ofTopic, "hidden"), resource(ofTopic, "nope"), resource(ofBroker, "1"),
		resource(ofBroker, ""), resource(ofBroker, "2"), resource(ofLogger, "1"), resource(32, "g"), resource(16, "m"), resource(ofTopic, "readcfg")))
	if first := resp.Resources[0]; first.ResourceName != "readcfg" || len(first.Configs) != 37 {
		t.Errorf("%+v", first)
	}
	for i, want := range []protocol.ErrorCode{
		protocol.TopicAuthorizationFailed, protocol.TopicAuthorizationFailed, protocol.ClusterAuthorizationFailed, protocol.ClusterAuthorizationFailed,
		protocol.ClusterAuthorizationFailed, protocol.ClusterAuthorizationFailed, protocol.GroupAuthorizationFailed, protocol.ClusterAuthorizationFailed,
	} {
		got := resp.Resources[i+1]
		if protocol.ErrorCode(got.ErrorCode) != want || deref(got.ErrorMessage) != sentences[want] || len(got.Configs) != 0 {
			t.Errorf("%q: %+v", got.ResourceName, got)
		}
	}
}
