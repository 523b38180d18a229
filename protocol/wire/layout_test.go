package wire

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// eachVersion runs over every API and version of Apache Kafka 4.4.0.
func eachVersion(visit func(api protocol.API, version int16)) {
	for _, api := range protocol.APIs {
		for version := api.MinVersion; version <= api.MaxVersion; version++ {
			visit(api, version)
		}
	}
}

// fill sets every field of a kmsg message to a random value that is not its
// default, so that every field and tag is written.
func fill(random *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[kmsg.Tags]() {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "Version" {
				fill(random, v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(random, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+random.IntN(3), 3))
		for i := range v.Len() {
			fill(random, v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(random, v.Index(i))
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1 + random.Int64N(120))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(1 + random.Uint64N(120))
	case reflect.Float64:
		v.SetFloat(random.Float64())
	case reflect.String:
		v.SetString(strings.Repeat("x", 1+random.IntN(200)))
	default:
		panic("no filling for " + v.Type().String())
	}
}

// strictly walks a message with its layout: all of it, and no tag that Apache
// Kafka would not know in this version.
func strictly(t *testing.T, k layoutKey, body []byte) {
	t.Helper()
	l := layoutOf(k)
	if l == nil {
		t.Fatalf("%s %d (response %v) has no layout", k.key, k.version, k.response)
	}
	g := guard{src: body, left: 1 << 40}
	g.structure(l)
	if g.err != nil || len(g.src) > 0 || g.unknownTags > 0 {
		t.Errorf("%s %d (response %v): error %v, %d bytes left, %d tags of other versions", k.key, k.version, k.response, g.err, len(g.src), g.unknownTags)
	}
}

// Every message of every version, with every field set, is after the gate what
// the layout made from Apache Kafka's definitions says: so the gates miss
// nothing, and the layouts agree with kmsg.
func TestGatesAndLayoutsAgainstEveryMessage(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	eachVersion(func(api protocol.API, version int16) {
		for range 3 {
			req := kmsg.RequestForKey(int16(api.Key))
			fill(random, reflect.ValueOf(req).Elem())
			req.SetVersion(version)
			GateRequestTags(req)
			body := req.AppendTo(nil)
			strictly(t, layoutKey{api.Key, false, version}, body)
			again, err := DecodeRequest(RequestHeader{Key: api.Key, Version: version}, body)
			if err != nil || string(again.AppendTo(nil)) != string(body) {
				t.Errorf("%s %d request does not come back: %v", api.Name, version, err)
			}
			if req.IsFlexible() != isFlexible(api.Key, version) {
				t.Errorf("%s %d: kmsg says flexible %v", api.Name, version, req.IsFlexible())
			}

			resp := kmsg.ResponseForKey(int16(api.Key))
			fill(random, reflect.ValueOf(resp).Elem())
			resp.SetVersion(version)
			frame := AppendResponse(nil, 42, resp)
			strictly(t, layoutKey{api.Key, true, version}, resp.AppendTo(nil))
			id, back, err := ReadResponse(frame[LengthBytes:], req)
			if err != nil || id != 42 || string(back.AppendTo(nil)) != string(resp.AppendTo(nil)) {
				t.Errorf("%s %d response does not come back: %d %v", api.Name, version, id, err)
			}
		}
	})
}

// The list of version-gated tags, derived from the layouts: a new one must get
// a gate, which the test above then checks.
func TestVersionGatedTags(t *testing.T) {
	var gated []string
	for _, api := range protocol.APIs {
		for _, response := range []bool{false, true} {
			for version := api.MinVersion; version <= api.MaxVersion; version++ {
				collectGated(layoutOf(layoutKey{api.Key, response, version}), func(tag uint32) {
					name := api.Name + map[bool]string{false: "Request", true: "Response"}[response]
					gated = append(gated, name+" "+string(rune('0'+version%10))+" tag "+string(rune('0'+tag)))
				})
			}
		}
	}
	got := map[string]bool{}
	for _, line := range gated {
		got[strings.Fields(line)[0]] = true
	}
	want := []string{"ProduceResponse", "FetchRequest", "FetchResponse", "VoteResponse", "FetchSnapshotRequest", "FetchSnapshotResponse", "BrokerHeartbeatRequest"}
	for _, name := range want {
		if !got[name] {
			t.Errorf("%s has no gated tag any more", name)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("version-gated tags without a gate in gate.go: %v", got)
	}
}

func collectGated(l *layout, found func(tag uint32)) {
	for tag, n := range l.tagged {
		if n == nil {
			found(tag)
		}
	}
	for i := range l.fields {
		n := &l.fields[i]
		if n.kind == kindArray {
			n = n.element
		}
		if n.kind == kindStruct {
			collectGated(n.structure, found)
		}
	}
}

// allocated gives the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// bomb writes the smallest message of a layout in which the array number target
// has as many elements as fit in size bytes; every struct has tags unknown tags.
type bomb struct {
	target, seen, size, tags int
	out                      []byte
}

func (b *bomb) structure(l *layout) {
	for i := range l.fields {
		b.node(&l.fields[i], l.flexible)
	}
	if l.flexible {
		b.out = append(b.out, byte(b.tags))
		for tag := range b.tags {
			b.out = append(b.out, byte(100+tag), 0)
		}
	}
}

func (b *bomb) node(n *node, flexible bool) {
	length := func(count, wide int) {
		switch {
		case flexible:
			count++
			for count >= 0x80 {
				b.out = append(b.out, byte(count)|0x80)
				count >>= 7
			}
			b.out = append(b.out, byte(count))
		case wide == 2:
			b.out = append(b.out, byte(count>>8), byte(count))
		default:
			b.out = append(b.out, byte(count>>24), byte(count>>16), byte(count>>8), byte(count))
		}
	}
	switch n.kind {
	case kindFixed:
		b.out = append(b.out, make([]byte, n.size)...)
	case kindString:
		length(0, 2)
	case kindBytes:
		length(0, 4)
	case kindStruct:
		if n.nullable {
			b.out = append(b.out, 1)
		}
		b.structure(n.structure)
	case kindArray:
		b.seen++
		mine := b.seen == b.target
		count := 1
		if mine {
			probe := &bomb{target: -1, tags: b.tags}
			probe.node(n.element, flexible)
			count = max(1, b.size/len(probe.out))
		}
		if b.target < 0 || b.seen > b.target {
			count = 0
		}
		length(count, 4)
		for range count {
			b.node(n.element, flexible)
		}
	}
}

// Count bombs of every array of every request and response: decoded or
// refused, but never more than 64 bytes for each byte and 64 KiB.
func TestCountBombs(t *testing.T) {
	worst, worstName, refused := 0.0, "", 0
	eachVersion(func(api protocol.API, version int16) {
		if version != api.MinVersion && version != api.MaxVersion && version != api.Flexible {
			return
		}
		l := layoutOf(layoutKey{api.Key, false, version})
		for target := 1; target < 12; target++ {
			for tags := range 3 {
				b := &bomb{target: target, size: 128 << 10, tags: tags}
				b.structure(l)
				if b.seen < target {
					break
				}
				h := RequestHeader{Key: api.Key, Version: version}
				var err error
				used := allocated(func() { _, err = DecodeRequest(h, b.out) })
				if used > allocationFactor*uint64(64*len(b.out)+64<<10) {
					t.Errorf("%s %d, array %d, %d tags: %d bytes allocated for %d", api.Name, version, target, tags, used, len(b.out))
				}
				if errors.Is(err, ErrTooLarge) && tags > 0 {
					refused++
				} else if err != nil {
					t.Errorf("%s %d, array %d: %v", api.Name, version, target, err)
				}
				if factor := float64(used) / float64(len(b.out)); factor > worst && len(b.out) > 100<<10 {
					worst, worstName = factor, api.Name
				}
			}
		}
	})
	t.Logf("worst accepted: %.1f bytes for each byte (%s); refused %d", worst, worstName, refused)
}
