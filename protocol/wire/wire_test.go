package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

func TestHeaderVersionsOfApacheKafka(t *testing.T) {
	text, err := os.ReadFile("testdata/headers.golden")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		var key protocol.APIKey
		var version, request, response int16
		if _, err := fmt.Sscan(line, &key, &version, &request, &response); err != nil {
			t.Fatal(err)
		}
		api := protocol.APIOf(key)
		if api == nil {
			t.Errorf("no API %d", key)
			continue
		}
		if version > api.MaxVersion || version < api.MinVersion {
			continue // unstable
		}
		rows++
		if isFlexible(key, version) != (request == 2) || hasResponseTags(key, version) != (response == 1) {
			t.Errorf("%s %d: Apache Kafka has request header %d and response header %d", key, version, request, response)
		}
	}
	if rows < 300 {
		t.Errorf("only %d rows", rows)
	}
}

func TestReadRequestHeader(t *testing.T) {
	name := "me"
	for _, c := range []struct {
		what  string
		frame string
		want  RequestHeader
		body  string
		err   error
	}{
		{"header 1", "\x00\x03\x00\x01\x00\x00\x00\x07\x00\x02mebody", RequestHeader{protocol.Metadata, 1, 7, &name}, "body", nil},
		{"null client id", "\x00\x03\x00\x01\x00\x00\x00\x07\xff\xffbody", RequestHeader{protocol.Metadata, 1, 7, nil}, "body", nil},
		{"header 2, client id not compact", "\x00\x03\x00\x09\x00\x00\x00\x07\x00\x02me\x00body", RequestHeader{protocol.Metadata, 9, 7, &name}, "body", nil},
		{"header 2, unknown tag", "\x00\x03\x00\x09\x00\x00\x00\x07\xff\xff\x01\x05\x03abcbody", RequestHeader{protocol.Metadata, 9, 7, nil}, "body", nil},
		{"SaslHandshake is never flexible", "\x00\x11\x00\x01\x00\x00\x00\x07\xff\xffbody", RequestHeader{protocol.SaslHandshake, 1, 7, nil}, "body", nil},
		{"ApiVersions 99", "\x00\x12\x00\x63\x00\x00\x00\x07\x00\x02me\x00body", RequestHeader{protocol.ApiVersions, 99, 7, &name}, "", ErrUnsupportedVersion},
		{"version -1", "\x00\x12\xff\xff\x00\x00\x00\x07\x00\x02mebody", RequestHeader{protocol.ApiVersions, -1, 7, &name}, "", ErrUnsupportedVersion},
		{"unknown key", "\x03\xe7\x00\x01\x00\x00\x00\x07\x00\x02mebody", RequestHeader{999, 1, 7, nil}, "", ErrUnknownAPI},
		{"key -1", "\xff\xff\x00\x01\x00\x00\x00\x07\x00\x02mebody", RequestHeader{-1, 1, 7, nil}, "", ErrUnknownAPI},
		{"empty", "", RequestHeader{}, "", ErrMalformed},
		{"seven bytes", "\x00\x03\x00\x01\x00\x00\x00", RequestHeader{}, "", ErrMalformed},
		{"no client id", "\x00\x03\x00\x01\x00\x00\x00\x07\x00", RequestHeader{protocol.Metadata, 1, 7, nil}, "", ErrMalformed},
		{"client id too long", "\x00\x03\x00\x01\x00\x00\x00\x07\x00\x09me", RequestHeader{protocol.Metadata, 1, 7, nil}, "", ErrMalformed},
		{"tags cut off", "\x00\x03\x00\x09\x00\x00\x00\x07\xff\xff\x01\x05\x09abc", RequestHeader{protocol.Metadata, 9, 7, nil}, "", ErrMalformed},
	} {
		h, body, err := ReadRequestHeader([]byte(c.frame))
		if !errors.Is(err, c.err) || string(body) != c.body {
			t.Errorf("%s: body %q, error %v", c.what, body, err)
		}
		id, wantID := "null", "null"
		if h.ClientID != nil {
			id = *h.ClientID
		}
		if c.want.ClientID != nil {
			wantID = *c.want.ClientID
		}
		if h.Key != c.want.Key || h.Version != c.want.Version || h.CorrelationID != c.want.CorrelationID || id != wantID {
			t.Errorf("%s: got %+v", c.what, h)
		}
	}
}

func TestRequestRoundTrip(t *testing.T) {
	name := "client"
	eachVersion(func(api protocol.API, version int16) {
		req := kmsg.RequestForKey(int16(api.Key))
		req.SetVersion(version)
		frame := AppendRequest([]byte("kept"), RequestHeader{CorrelationID: 5, ClientID: &name}, req)
		h, body, err := ReadRequestHeader(frame[8:])
		if err != nil || h.Key != api.Key || h.Version != version || h.CorrelationID != 5 || *h.ClientID != name {
			t.Fatalf("%s %d: %+v %v", api.Name, version, h, err)
		}
		if !bytes.Equal(body, req.AppendTo(nil)) {
			t.Errorf("%s %d: body %x", api.Name, version, body)
		}
	})
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		what    string
		key     protocol.APIKey
		version int16
		body    string
		want    error
	}{
		{"unknown key", 999, 0, "", ErrUnknownAPI},
		{"removed version", protocol.Produce, 2, "", ErrUnsupportedVersion},
		{"later version", protocol.Metadata, 77, "", ErrUnsupportedVersion},
		{"empty", protocol.Metadata, 1, "", ErrMalformed},
		{"3.6 GiB out of 4 bytes", protocol.Metadata, 1, "\x7f\xff\xff\xff", ErrMalformed},
		{"compact count 2^32-1", protocol.Metadata, 9, "\xff\xff\xff\xff\x0f", ErrMalformed},
		{"number of six bytes", protocol.Metadata, 9, "\xff\xff\xff\xff\xff\x01", ErrMalformed},
		{"null where none may be", protocol.CreateTopics, 2, "\xff\xff\xff\xff\x00\x00\x00\x00\x00", ErrMalformed},
		{"string of 32,768 bytes", protocol.ConsumerGroupHeartbeat, 1, "\x81\x80\x02" + strings.Repeat("g", 1<<15), ErrMalformed},
		{"tags without end", protocol.Metadata, 9, "\x01\x01\x00\x00\xff\xff\xff\xff\x0f", ErrMalformed},
	} {
		if _, err := DecodeRequest(RequestHeader{Key: c.key, Version: c.version}, []byte(c.body)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	longest := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	longest.Version, longest.Group = 1, strings.Repeat("g", 1<<15-1)
	if _, err := DecodeRequest(RequestHeader{Key: protocol.ConsumerGroupHeartbeat, Version: 1}, longest.AppendTo(nil)); err != nil {
		t.Errorf("the longest string: %v", err)
	}
	tag := []byte("\x01\x01\x00\x00\x01\x09\x02hi") // no topics, three flags, an unknown tag: skipped, not refused
	if _, err := DecodeRequest(RequestHeader{Key: protocol.Metadata, Version: 9}, tag); err != nil {
		t.Errorf("unknown tag: %v", err)
	}
}

// A Fetch 15 whose partition carries the tags of 17 and 18: read past.
func TestTagsOfLaterVersionsAreDropped(t *testing.T) {
	req := kmsg.NewPtrFetchRequest()
	topic, partition := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	partition.ReplicaDirectoryID, partition.HighWatermark = [16]byte{1}, 5
	topic.Partitions = append(topic.Partitions, partition)
	req.Topics = append(req.Topics, topic)
	req.SetVersion(15)
	decoded, err := DecodeRequest(RequestHeader{Key: protocol.Fetch, Version: 15}, req.AppendTo(nil))
	if err != nil {
		t.Fatal(err)
	}
	got := decoded.(*kmsg.FetchRequest).Topics[0].Partitions[0] //nolint:forcetypeassert // it is one
	if got.ReplicaDirectoryID != [16]byte{} || got.HighWatermark != kmsg.NewFetchRequestTopicPartition().HighWatermark {
		t.Errorf("tags of later versions were taken: %+v", got)
	}
}

func TestRegion(t *testing.T) {
	region, source := fileRegion([]byte("records"))
	if got, err := region.ReadAll(); string(got) != "records" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	part := make([]byte, 3)
	if err := region.ReadAt(part, 4); string(part) != "rds" || err != nil {
		t.Errorf("got %q, %v", part, err)
	}
	if err := region.ReadAt(part, 5); err == nil {
		t.Error("a read beyond the region was allowed")
	}
	long := region
	long.Length = 100
	if _, err := long.ReadAll(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("short file: %v", err)
	}
	source.onRead = func() { source.generation++ }
	if _, err := region.ReadAll(); !errors.Is(err, ErrStaleRegion) {
		t.Errorf("truncated while read: %v", err)
	}
	if _, err := region.ReadAll(); !errors.Is(err, ErrStaleRegion) {
		t.Errorf("truncated before: %v", err)
	}
	region.Release()
	Region{Bytes: []byte("x")}.Release()
	if source.released != 1 {
		t.Errorf("released %d times", source.released)
	}
}

func TestFrame(t *testing.T) {
	PoisonFrames(true)
	defer PoisonFrames(false)
	for _, size := range []int{0, 1, 1 << 10, 1<<10 + 1, 100_000, 1 << 20, 16 << 20, 17 << 20} {
		returned := 0
		f := NewFrame(size, func() { returned++ })
		if len(f.Bytes) != size {
			t.Fatalf("%d bytes for %d", len(f.Bytes), size)
		}
		if waste := cap(f.Bytes) - size; size >= 1<<10 && waste > size/4+1 {
			t.Errorf("a frame of %d bytes holds %d", size, cap(f.Bytes))
		}
		kept := f.Bytes
		f.Retain()
		f.Release()
		if returned != 0 {
			t.Fatal("returned while a reference is left")
		}
		f.Release()
		if returned != 1 {
			t.Fatalf("returned %d times", returned)
		}
		if size > 0 && kept[0] != 0xDB {
			t.Errorf("size %d: not poisoned", size)
		}
	}
	for what, misuse := range map[string]func(f *Frame){"released": func(f *Frame) { f.Release() }, "retained": func(f *Frame) { f.Retain() }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a frame was %s after its end without a panic", what)
				}
			}()
			f := &Frame{Bytes: make([]byte, 3)}
			startFrame(f, nil).Release()
			misuse(f)
		}()
	}
}

// FuzzDecodeRequest feeds any bytes to any API and version, as request and as
// response, with the bound on what may be allocated.
func FuzzDecodeRequest(f *testing.F) {
	for i, api := range protocol.APIs {
		req := kmsg.RequestForKey(int16(api.Key))
		req.SetVersion(api.MaxVersion)
		f.Add(uint8(i), uint8(api.MaxVersion-api.MinVersion), req.AppendTo(nil))
		f.Add(uint8(i), uint8(0), []byte("\x7f\xff\xff\xff\x7f\xff\xff\xff"))
		f.Add(uint8(i), uint8(api.MaxVersion-api.MinVersion), bytes.Repeat([]byte("\x05\x03\x63\x00\x64\x00"), 400))
	}
	f.Fuzz(func(t *testing.T, which, version uint8, body []byte) {
		api := protocol.APIs[int(which)%len(protocol.APIs)]
		h := RequestHeader{Key: api.Key, Version: api.MinVersion + int16(version)%(api.MaxVersion-api.MinVersion+1)}
		layoutOf(layoutKey{h.Key, false, h.Version}) // compiled once in a process, not the message's cost
		layoutOf(layoutKey{h.Key, true, h.Version})
		bound := allocationFactor * uint64(64*len(body)+64<<10)
		if used := allocated(func() { _, _ = DecodeRequest(h, body) }); used > bound {
			t.Errorf("%s %d request: %d bytes allocated for %d", api.Name, h.Version, used, len(body))
		}
		req := kmsg.RequestForKey(int16(api.Key))
		req.SetVersion(h.Version)
		if used := allocated(func() { _, _, _ = ReadResponse(body, req) }); used > bound {
			t.Errorf("%s %d response: %d bytes allocated for %d", api.Name, h.Version, used, len(body))
		}
		if used := allocated(func() { _, _, _ = ReadRequestHeader(body) }); used > bound {
			t.Errorf("header: %d bytes allocated for %d", used, len(body))
		}
	})
}

func BenchmarkDecodeProduce(b *testing.B) {
	req := kmsg.NewPtrProduceRequest()
	req.Version = 9
	for range 10 {
		topic, partition := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
		topic.Topic, partition.Records = "topic", make([]byte, 1000)
		topic.Partitions = append(topic.Partitions, partition)
		req.Topics = append(req.Topics, topic)
	}
	body := req.AppendTo(nil)
	l := layoutOf(layoutKey{protocol.Produce, false, 9})
	b.Run("guard", func(b *testing.B) {
		for b.Loop() {
			if err := checkBody(l, body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			if _, err := DecodeRequest(RequestHeader{Key: protocol.Produce, Version: 9}, body); err != nil {
				b.Fatal(err)
			}
		}
	})
}
