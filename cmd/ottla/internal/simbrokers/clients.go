package simbrokers

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/seeded"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/wire"
)

// acknowledged is a batch that all in-sync replicas have confirmed.
type acknowledged struct {
	tp    protocol.TopicPartition
	base  protocol.Offset
	value string
}

func (s *Simulation) populate() {
	a := &admin{s: s, random: s.random.Fork()}
	a.create()
	a.fidget()
	for i := range s.plan.partitions {
		p := &producer{s: s, random: s.random.Fork(), tp: protocol.TopicPartition{Topic: topicName, Partition: int32(i)}, leader: 1 + i%brokers}
		s.producers = append(s.producers, p)
		p.later(p.next)
	}
}

// admin makes the topic, and then writes metadata that changes nothing.
type admin struct {
	s      *Simulation
	random *seeded.Random
}

func (a *admin) ask(req kmsg.Request, done func(kmsg.Response, error)) {
	end := firstController + a.random.Below(members)
	if l := a.s.controllers.active; l != nil && a.random.Chance(700) {
		end = firstController + l.index
	}
	a.s.network.Call(clientEnd, end, kmsg.NameForKey(req.Key()), 500*time.Millisecond, func(reply func(any)) {
		a.s.controllers.serve(end, req, reply)
	}, func(answer any, err error) {
		resp, _ := answer.(kmsg.Response)
		done(resp, err)
	})
}

func (a *admin) create() {
	a.s.After(a.random.Between(10*time.Millisecond, 100*time.Millisecond), "the admin creates a topic", func() {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Version, req.TimeoutMillis = 7, 1000
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = topicName, int32(a.s.plan.partitions), brokers
		config, value := kmsg.NewCreateTopicsRequestTopicConfig(), fmt.Sprint(minISR)
		config.Name, config.Value = "min.insync.replicas", &value
		topic.Configs = append(topic.Configs, config)
		req.Topics = append(req.Topics, topic)
		a.ask(req, func(resp kmsg.Response, err error) {
			created, ok := resp.(*kmsg.CreateTopicsResponse)
			if err != nil || !ok || len(created.Topics) != 1 {
				a.create()
				return
			}
			switch code := protocol.ErrorCode(created.Topics[0].ErrorCode); code {
			case protocol.None, protocol.TopicAlreadyExists:
				a.s.created = true
			default:
				a.create()
			}
		})
	})
}

func (a *admin) fidget() {
	a.s.After(a.random.Between(5*time.Millisecond, 400*time.Millisecond), "the admin changes a setting", func() {
		if a.s.ending {
			return
		}
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		req.Version = 1
		resource := kmsg.NewIncrementalAlterConfigsRequestResource()
		resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceType(metadata.TopicConfig), topicName
		config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		value := fmt.Sprint(100_000_000 + a.random.Below(1_000_000))
		config.Name, config.Value = "retention.ms", &value
		resource.Configs = append(resource.Configs, config)
		req.Resources = append(req.Resources, resource)
		a.ask(req, func(kmsg.Response, error) { a.fidget() })
	})
}

// producer sends one record after the other with values of its own, each again until it is acknowledged.
type producer struct {
	s      *Simulation
	random *seeded.Random
	tp     protocol.TopicPartition
	count  int
	value  string
	leader int
	done   bool
}

func (p *producer) later(run func()) {
	p.s.After(p.random.Between(time.Millisecond, 50*time.Millisecond), "a producer of "+p.tp.String()+" goes on", run)
}

func (p *producer) next() {
	if p.s.ending {
		p.done = true
		return
	}
	p.count++
	p.value = fmt.Sprintf("%d-%d", p.tp.Partition, p.count)
	p.send()
}

func (p *producer) send() {
	topic := p.s.controllers.truth.loader.Image().Topic(topicName)
	state := p.s.controllers.truth.loader.Image().Partition(p.tp)
	if topic == nil || state == nil {
		if p.s.ending {
			p.done = true
			return
		}
		p.later(p.send)
		return
	}
	if p.random.Chance(700) && state.Leader > 0 {
		p.leader = int(state.Leader)
	}
	o := record.PlainOptions()
	b := record.NewBuilder(o)
	b.Append(p.s.Now.UnixMilli(), nil, []byte(p.value), nil)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 700
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = topicName, topic.ID
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = p.tp.Partition, b.Build(nil)
	t.Partitions = append(t.Partitions, part)
	req.Topics = append(req.Topics, t)
	value := p.value
	p.s.ask(clientEnd, p.leader, req, func(frame []byte, err error) {
		if err == nil {
			var resp kmsg.Response
			_, resp, err = wire.ReadResponse(frame, req)
			must(err)
			answer := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
			if answer.ErrorCode == 0 {
				p.s.acked = append(p.s.acked, acknowledged{p.tp, protocol.Offset(answer.BaseOffset), value})
				p.s.Linef("acknowledged: %s %d %s", p.tp, answer.BaseOffset, value)
				p.later(p.next)
				return
			}
		}
		if p.leader = 1 + p.random.Below(brokers); p.random.Chance(200) {
			p.later(p.next) // it is given up
			return
		}
		p.later(p.send)
	})
}
