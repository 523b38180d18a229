package api

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/wire"
)

func apiVersionsRequest() *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "ottla-test", "1.0"
	return req
}

func TestRegistry(t *testing.T) {
	last := protocol.APIKey(-1)
	for _, a := range Registry() {
		if a.Key <= last {
			t.Errorf("%s is out of order", a.Key)
		}
		last = a.Key
		known := protocol.APIOf(a.Key)
		if a.MinVersion < known.MinVersion || a.MaxVersion > known.MaxVersion || a.Scope == 0 || a.Scope&^known.Scope != 0 {
			t.Errorf("%s %d-%d on %d is not within Apache Kafka's %d-%d on %d",
				a.Key, a.MinVersion, a.MaxVersion, a.Scope, known.MinVersion, known.MaxVersion, known.Scope)
		}
		if a.serve == nil {
			t.Errorf("%s has no handler", a.Key)
		}
	}
	if Supported(protocol.OnBroker, protocol.Produce, 2) || !Supported(protocol.OnBroker, protocol.Produce, 3) || !Supported(protocol.OnBroker, protocol.Produce, 13) {
		t.Error("Produce is served from 3 to 13")
	}
	if Supported(protocol.OnController, protocol.Produce, 9) || Supported(protocol.OnBroker, protocol.APIKey(999), 0) {
		t.Error("what is served on another kind of listener, or nowhere, is supported")
	}
}

// BEHAVIOUR 2, 5, 6, 7.
func TestApiVersions(t *testing.T) {
	f := newFixture(t)
	versions(t, protocol.ApiVersions, func(t *testing.T, version int16) {
		resp := request[*kmsg.ApiVersionsResponse](f.connect(), apiVersionsRequest(), version)
		if resp.ErrorCode != 0 {
			t.Fatalf("error %d", resp.ErrorCode)
		}
		told := map[int16]kmsg.ApiVersionsResponseApiKey{}
		for _, k := range resp.ApiKeys {
			told[k.ApiKey] = k
		}
		if k := told[0]; k.MinVersion != 0 || k.MaxVersion != 13 {
			t.Errorf("Produce is told as %d-%d, not 0-13", k.MinVersion, k.MaxVersion)
		}
		for _, a := range Registry() {
			if _, there := told[int16(a.Key)]; there != (a.Scope&protocol.OnBroker != 0) {
				t.Errorf("%s told on a broker's listener: %v", a.Key, there)
			}
		}
		if version < 3 {
			return
		}
		supported := map[string]bool{}
		for _, s := range resp.SupportedFeatures {
			supported[s.Name] = true
			if version == 3 && s.MinVersion == 0 {
				t.Errorf("version 3 tells %s with minimum 0", s.Name)
			}
		}
		if !supported[metadata.MetadataVersionFeature] || supported[metadata.KRaftVersionFeature] != (version > 3) {
			t.Errorf("supported features %v", slices.Sorted(maps.Keys(supported)))
		}
		levels := map[string]int16{}
		for _, level := range resp.FinalizedFeatures {
			levels[level.Name] = level.MaxVersionLevel
			if level.MinVersionLevel != level.MaxVersionLevel {
				t.Errorf("%s is finalized from %d to %d", level.Name, level.MinVersionLevel, level.MaxVersionLevel)
			}
		}
		want := map[string]int16{metadata.MetadataVersionFeature: int16(metadata.MaxMetadataVersion), metadata.KRaftVersionFeature: 1}
		if !maps.Equal(levels, want) {
			t.Errorf("finalized features %v, not %v", levels, want)
		}
		if resp.FinalizedFeaturesEpoch != int64(f.metadata().Provenance().Offset) {
			t.Errorf("finalized features epoch %d", resp.FinalizedFeaturesEpoch)
		}
	})
}

// What is forwarded is told as far as the active controller serves it, which may be older.
func TestApiVersionsOfAnOlderController(t *testing.T) {
	known := true
	f := newFixture(t, func(n *Node) {
		n.ControllerServes = func(key protocol.APIKey) (lowest, highest int16, isKnown bool) {
			switch key {
			case protocol.UpdateFeatures:
				return 0, 1, known
			case protocol.DescribeQuorum:
				return 0, -1, known
			}
			return 0, 99, known
		}
	})
	told := func() map[int16]int16 {
		highest := map[int16]int16{}
		for _, k := range request[*kmsg.ApiVersionsResponse](f.connect(), apiVersionsRequest(), 4).ApiKeys {
			highest[k.ApiKey] = k.MaxVersion
		}
		return highest
	}
	of := func(key protocol.APIKey) int16 { return protocol.APIOf(key).MaxVersion }
	highest := told()
	if _, there := highest[int16(protocol.DescribeQuorum)]; there || highest[int16(protocol.UpdateFeatures)] != 1 ||
		highest[int16(protocol.CreateTopics)] != of(protocol.CreateTopics) || highest[int16(protocol.Fetch)] != of(protocol.Fetch) {
		t.Errorf("with an older controller: %v", highest)
	}
	known = false
	highest = told()
	for _, key := range []protocol.APIKey{protocol.DescribeQuorum, protocol.UpdateFeatures} {
		if highest[int16(key)] != of(key) {
			t.Errorf("with a controller that is not known %s is told up to %d", key, highest[int16(key)])
		}
	}
}

// A finalized feature that this build does not serve is not told.
func TestApiVersionsLeavesUnservedFeaturesOut(t *testing.T) {
	f := newFixture(t)
	f.write(featureRecord(metadata.ShareVersionFeature, 1))
	resp := request[*kmsg.ApiVersionsResponse](f.connect(), apiVersionsRequest(), 4)
	for _, level := range resp.FinalizedFeatures {
		if level.Name == metadata.ShareVersionFeature {
			t.Errorf("%s is told as finalized", level.Name)
		}
	}
}

func TestApiVersionsOnController(t *testing.T) {
	f := newFixture(t)
	req := apiVersionsRequest()
	req.ClusterID, req.NodeID = ptr("another"), 99 // controllers do not look
	resp := request[*kmsg.ApiVersionsResponse](f.connectController(), req, 5)
	if resp.ErrorCode != 0 {
		t.Fatalf("error %d", resp.ErrorCode)
	}
	for _, k := range resp.ApiKeys {
		if a := find(registry, protocol.APIKey(k.ApiKey)); a.Scope&protocol.OnController == 0 {
			t.Errorf("%s is told on a controller's listener", a.Key)
		}
	}
}

// BEHAVIOUR 1: another version is answered in version 0 with ApiVersions alone, and
// the connection lives on.
func TestApiVersionsUnsupported(t *testing.T) {
	f := newFixture(t)
	p := f.connect()
	frame := []byte{0, 0, 0, 0, 0, 18, 0, 99, 0, 0, 0, 7, 0xff, 0xff, 0}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-wire.LengthBytes))
	p.sendFrame(frame)
	<-f.handled
	answer, err := p.receiveFrame()
	f.must(err)
	want := []byte{0, 0, 0, 7, 0, 0x23, 0, 0, 0, 1, 0, 0x12, 0, 0, 0, 5}
	if !bytes.Equal(answer, want) {
		t.Fatalf("answer % x, not % x", answer, want)
	}
	p.last = 8
	if resp := request[*kmsg.ApiVersionsResponse](p, apiVersionsRequest(), 3); resp.ErrorCode != 0 {
		t.Errorf("then error %d", resp.ErrorCode)
	}
}

// BEHAVIOUR 4 and 124 (KIP-511, KIP-1242).
func TestApiVersionsRefuses(t *testing.T) {
	f := newFixture(t)
	for _, test := range []struct {
		what    string
		version int16
		change  func(*kmsg.ApiVersionsRequest)
		want    protocol.ErrorCode
	}{
		{"no software name", 3, func(r *kmsg.ApiVersionsRequest) { r.ClientSoftwareName = "" }, protocol.InvalidRequest},
		{"a software name that ends in a dot", 3, func(r *kmsg.ApiVersionsRequest) { r.ClientSoftwareName = "a." }, protocol.InvalidRequest},
		{"a line break behind the name", 3, func(r *kmsg.ApiVersionsRequest) { r.ClientSoftwareName = "a\n" }, protocol.InvalidRequest},
		{"a software version with a space", 4, func(r *kmsg.ApiVersionsRequest) { r.ClientSoftwareVersion = "1 0" }, protocol.InvalidRequest},
		{"one letter", 4, func(r *kmsg.ApiVersionsRequest) { r.ClientSoftwareName = "a" }, protocol.None},
		{"a cluster without a node", 5, func(r *kmsg.ApiVersionsRequest) { r.ClusterID = ptr(fixtureClusterID) }, protocol.InvalidRequest},
		{"a node without a cluster", 5, func(r *kmsg.ApiVersionsRequest) { r.NodeID = 1 }, protocol.InvalidRequest},
		{"another cluster", 5, func(r *kmsg.ApiVersionsRequest) { r.ClusterID, r.NodeID = ptr("x"), 1 }, protocol.RebootstrapRequired},
		{"another node", 5, func(r *kmsg.ApiVersionsRequest) { r.ClusterID, r.NodeID = ptr(fixtureClusterID), 2 }, protocol.RebootstrapRequired},
		{"this node", 5, func(r *kmsg.ApiVersionsRequest) { r.ClusterID, r.NodeID = ptr(fixtureClusterID), 1 }, protocol.None},
		{"nobody meant", 5, func(*kmsg.ApiVersionsRequest) {}, protocol.None},
	} {
		req := apiVersionsRequest()
		test.change(req)
		resp := request[*kmsg.ApiVersionsResponse](f.connect(), req, test.version)
		if got := protocol.ErrorCode(resp.ErrorCode); got != test.want {
			t.Errorf("%s: %s, not %s", test.what, got, test.want)
		}
		if (len(resp.ApiKeys) > 0) != (test.want == protocol.None) {
			t.Errorf("%s: %d APIs with %s", test.what, len(resp.ApiKeys), test.want)
		}
	}
}

// BEHAVIOUR 8: what is not served ends the connection without an answer.
func TestUnservedEndsTheConnection(t *testing.T) {
	f := newFixture(t)
	for _, header := range [][]byte{
		{0, 3, 0, 77}, // Metadata 77
		{3, 231, 0, 0},
		{0, 0, 0, 2}, // Produce 2
	} {
		p := f.connect()
		frame := append([]byte{0, 0, 0, 10}, header...)
		p.sendFrame(append(frame, 0, 0, 0, 1, 0xff, 0xff))
		p.expectClosed()
	}
}
