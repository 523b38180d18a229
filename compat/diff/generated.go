package diff

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// apiStories ask every API in every version that the server has, right and wrong in many ways: what rules.go says is right,
// then each field of it set to something else (mutations.go), then the version above and bodies that are none.
var apiStories = func() []story {
	list := []story{{"advertised", advertised}, {"setting up", setUpAll}}
	for _, listener := range []string{"broker", "controller"} {
		for _, late := range []bool{false, true} {
			for key := range int16(95) {
				if r, ruled := rules[key]; ruled && r.late == late {
					list = append(list, story{kmsg.NameForKey(key) + " on the " + listener + "'s listener", func(t *Teller) { generate(t, key, listener) }})
				}
			}
		}
	}
	return list
}()

// generated is one case under way.
type generated struct {
	*Teller
	key, version int16
	on           string // the connection
	topic        string // of this API
	unique       string // of this case, for what is made or taken away

	cluster     string // its id
	transaction string // the transactional id of this case
	producer    int64  // and its producer id
}

// advertised tells what ApiVersions says, line by line.
func advertised(t *Teller) {
	for _, listener := range []string{"broker", "controller"} {
		resp := secret[*kmsg.ApiVersionsResponse](t, listener, 4, nodeless())
		if resp == nil {
			t.fail(fmt.Errorf("no answer to ApiVersions"))
			return
		}
		for _, api := range resp.ApiKeys {
			t.note(fmt.Sprintf("%s %s", listener, kmsg.NameForKey(api.ApiKey)), fmt.Sprintf("%d-%d", api.MinVersion, api.MaxVersion))
		}
		for _, f := range resp.SupportedFeatures {
			t.note(fmt.Sprintf("%s supports %s", listener, f.Name), fmt.Sprintf("%d-%d", f.MinVersion, f.MaxVersion))
		}
		for _, f := range resp.FinalizedFeatures {
			t.note(fmt.Sprintf("%s has finalized %s", listener, f.Name), fmt.Sprintf("%d-%d", f.MinVersionLevel, f.MaxVersionLevel))
		}
	}
}

func nodeless() *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "teller", "1"
	return req
}

// served gives the versions of an API that the server says it has on a listener.
func (t *Teller) served(listener string, key int16) (lowest, highest int16, any bool) {
	resp := secret[*kmsg.ApiVersionsResponse](t, listener+" versions", 4, nodeless())
	if resp == nil {
		t.fail(fmt.Errorf("no answer to ApiVersions"))
		return 0, 0, false
	}
	for _, api := range resp.ApiKeys {
		if api.ApiKey == key {
			return api.MinVersion, api.MaxVersion, true
		}
	}
	return 0, 0, false
}

// setUpAll makes a topic of two partitions with three records each for every API that Apache Kafka has.
func setUpAll(t *Teller) {
	var names []string
	for key := range int16(95) {
		if _, ruled := rules[key]; ruled {
			names = append(names, topicOf(key))
		}
	}
	t.setUp(2, names...)
	for _, name := range names {
		for partition := range int32(2) {
			t.writeTo(name, partition, of("one", "two", "three"))
		}
	}
	for range 400 {
		resp := secret[*kmsg.OffsetFetchResponse](t, "broker", 7, &kmsg.OffsetFetchRequest{Group: "gen-group"})
		secret[*kmsg.FindCoordinatorResponse](t, "broker", 3, coordinatorOf(3, 0, "gen-group"))
		if resp != nil && resp.ErrorCode == 0 {
			return
		}
		pause()
	}
	t.fail(fmt.Errorf("the groups have no coordinator"))
}

func topicOf(key int16) string { return fmt.Sprintf("gen-%02d", key) }

// setUp creates topics that are not there, waits until they are, and learns their ids.
func (t *Teller) setUp(partitions int32, names ...string) {
	create := kmsg.NewPtrCreateTopicsRequest()
	create.TimeoutMillis = 10_000
	for _, name := range names {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 1
		create.Topics = append(create.Topics, topic)
	}
	secret[*kmsg.CreateTopicsResponse](t, "setup", 7, create)
	t.learn(names...)
}

// learn waits until topics are there with their leaders, and learns their ids.
func (t *Teller) learn(names ...string) {
	for range 400 {
		ask := kmsg.NewPtrMetadataRequest()
		for _, name := range names {
			ask.Topics = append(ask.Topics, kmsg.MetadataRequestTopic{Topic: &name})
		}
		resp := secret[*kmsg.MetadataResponse](t, "setup", 12, ask)
		found := 0
		for i := range topicsOf(resp) {
			topic := resp.Topics[i]
			ready := !slices.ContainsFunc(topic.Partitions, func(p kmsg.MetadataResponseTopicPartition) bool { return p.ErrorCode != 0 || p.Leader < 0 })
			if topic.ErrorCode == 0 && ready && len(topic.Partitions) > 0 {
				t.ids[*topic.Topic] = topic.TopicID
				t.names[fmt.Sprintf("%x", topic.TopicID)] = "<id of " + *topic.Topic + ">"
				found++
			}
		}
		if t.err != nil || found == len(names) && t.led(resp) {
			return
		}
		pause()
	}
	t.fail(fmt.Errorf("the topics %q do not appear", names))
}

// led tells whether the partitions of topics are served, which Apache Kafka does a little after it has said who leads them.
func (t *Teller) led(of *kmsg.MetadataResponse) bool {
	ask := kmsg.NewPtrListOffsetsRequest()
	ask.ReplicaID = -1
	for _, topic := range of.Topics {
		in := kmsg.ListOffsetsRequestTopic{Topic: *topic.Topic}
		for _, p := range topic.Partitions {
			in.Partitions = append(in.Partitions, kmsg.ListOffsetsRequestTopicPartition{Partition: p.Partition, CurrentLeaderEpoch: -1, Timestamp: -1})
		}
		ask.Topics = append(ask.Topics, in)
	}
	resp := secret[*kmsg.ListOffsetsResponse](t, "setup", 7, ask)
	if resp == nil {
		return false
	}
	for _, topic := range resp.Topics {
		if slices.ContainsFunc(topic.Partitions, func(p kmsg.ListOffsetsResponseTopicPartition) bool { return p.ErrorCode != 0 }) {
			return false
		}
	}
	return true
}

// barrier waits until what the controller has answered is known to the broker, too: a topic that is made after it is there.
func (t *Teller) barrier() {
	t.counts["barrier"]++
	t.setUp(1, fmt.Sprintf("zz-barrier-%d", t.counts["barrier"]))
}

func topicsOf(resp *kmsg.MetadataResponse) []kmsg.MetadataResponseTopic {
	if resp == nil {
		return nil
	}
	return resp.Topics
}

func (t *Teller) idOf(topic string) [16]byte {
	if id, known := t.ids[topic]; known {
		return id
	}
	return strangeID
}

// generate asks one API on one listener.
func generate(t *Teller, key int16, listener string) {
	lowest, highest, any := t.served(listener, key)
	if !any || t.err != nil {
		return
	}
	if key == 0 {
		lowest = 3 // less is only advertised
	}
	for version := lowest; version <= highest; version++ {
		g := &generated{Teller: t, key: key, version: version, on: listener, topic: topicOf(key)}
		all := version == highest || version == lowest && listener == "broker"
		for _, variant := range variantsOf(key) {
			g.unique = fmt.Sprintf("%d-%s-%d-%s", key, listener[:1], version, variant)
			sample := g.request(variant)
			skip := rules[key].skip
			if listener == "controller" {
				skip = append(slices.Clone(skip), rules[key].skipOnController...)
			}
			list := mutations(sample, skip)
			if !all {
				list = someOf(list, int(version))
			}
			g.ask(variant, nil)
			if len(list) == 0 {
				g.trailing(sample)
			}
			for i := range list {
				g.unique = fmt.Sprintf("%d-%s-%d-%s%d", key, listener[:1], version, variant, i)
				g.ask(variant, &list[i])
			}
		}
	}
	g := &generated{Teller: t, key: key, version: highest, on: listener, topic: topicOf(key), unique: "malformed"}
	g.unreadable(lowest)
}

// someOf picks a few, others for each version.
func someOf(list []mutation, version int) []mutation {
	var some []mutation
	for i := version * 5 % max(len(list), 1); i < len(list) && len(some) < 3; i += 1 + len(list)/4 {
		some = append(some, list[i])
	}
	if len(some) == 0 && len(list) > 0 {
		some = list[:1]
	}
	return some
}

func variantsOf(key int16) []string {
	if v := rules[key].variants; len(v) > 0 {
		return v
	}
	return []string{""}
}

// request makes what is right.
func (g *generated) request(variant string) kmsg.Request {
	req := kmsg.RequestForKey(g.key)
	req.SetVersion(g.version)
	if adjust := rules[g.key].fill; adjust != nil {
		adjust(g, req, variant)
	}
	return req
}

func (g *generated) ask(variant string, m *mutation) {
	if g.err != nil {
		return
	}
	if prepare := rules[g.key].prepare; prepare != nil {
		prepare(g, variant)
	}
	req := g.request(variant)
	if g.err != nil {
		return
	}
	what := "right"
	if m != nil {
		what = m.label
		m.apply(reflect.ValueOf(req).Elem())
	}
	if variant != "" {
		what = variant + ": " + what
	}
	resp, otherwise := g.exchange(g.on, req)
	g.note(fmt.Sprintf("%s %d %s", kmsg.NameForKey(g.key), g.version, what), g.told(resp, otherwise))
}

// trailing asks with bytes behind the body, where there is no field to spoil.
func (g *generated) trailing(right kmsg.Request) {
	client := "teller"
	answer, otherwise := g.raw(g.on, frame(g.key, g.version, 7, &client, right.IsFlexible(), append(right.AppendTo(nil), 1, 2, 3)), 7)
	if otherwise == "" {
		otherwise = g.told(decode(right, answer))
	}
	g.note(fmt.Sprintf("%s %d bytes behind the body", kmsg.NameForKey(g.key), g.version), otherwise)
}

// unreadable asks in versions that there are not, and with bodies that are none.
func (g *generated) unreadable(lowest int16) {
	if g.err != nil {
		return
	}
	if prepare := rules[g.key].prepare; prepare != nil {
		prepare(g, variantsOf(g.key)[0])
	}
	right := g.request(variantsOf(g.key)[0])
	body, client, flexible := right.AppendTo(nil), "teller", right.IsFlexible()
	send := func(what string, version int16, body []byte) {
		answer, otherwise := g.raw(g.on, frame(g.key, version, 7, &client, flexible, body), 7)
		if otherwise == "" {
			var resp kmsg.Response
			reader := g.request(variantsOf(g.key)[0])
			if version != g.version { // only ApiVersions answers, in version 0
				reader.SetVersion(0)
			}
			resp, otherwise = decode(reader, answer)
			otherwise = g.told(resp, otherwise)
		}
		g.note(kmsg.NameForKey(g.key)+" "+what, otherwise)
	}
	send(fmt.Sprintf("version %d", g.version+1), g.version+1, body)
	if lowest > 0 {
		send(fmt.Sprintf("version %d", lowest-1), lowest-1, body)
	}
	send("version -1", -1, body)
	send("without a body", g.version, nil)
	send("half a body", g.version, body[:len(body)/2])
	send("a body of ones", g.version, []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	send("a body of large numbers", g.version, []byte("\x7f\xff\xff\xff\x7f\xff\xff\xff\x7f\xff\xff\xff\x7f\xff\xff\xff"))
}
