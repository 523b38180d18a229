package simbrokers

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/broker"
	"ottla/cmd/ottla/internal/seeded"
	"ottla/controller/metadata"
	"ottla/controller/txn"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/wire"
)

// acknowledged is a batch that all in-sync replicas have confirmed.
type acknowledged struct {
	tp    protocol.TopicPartition
	topic protocol.TopicID
	base  protocol.Offset
	value string
}

func (s *Simulation) populate() {
	a := &admin{s: s, random: s.random.Fork()}
	a.create()
	a.fidget()
	a.shift()
	for i := range s.plan.transactors {
		t := &transactor{s: s, random: s.random.Fork(), v1: s.random.Chance(300), id: fmt.Sprintf("txn-%d", i), producer: txn.NoProducer, leaders: map[int32]int{}}
		s.transactors = append(s.transactors, t)
		t.later("is started", func() { t.initialize(txn.NoProducer) })
	}
	for i := range s.plan.partitions {
		p := &producer{s: s, random: s.random.Fork(), tp: protocol.TopicPartition{Topic: topicName, Partition: int32(i)}, leader: 1 + i%replicas}
		s.producers = append(s.producers, p)
		p.later(p.next)
	}
	if !s.plan.changes() {
		return
	}
	s.losing = s.random.Fork()
	for i := range s.plan.partitions {
		s.read(protocol.TopicPartition{Topic: topicName, Partition: int32(i)})
	}
	if s.plan.renewal > 0 {
		a.renew()
		for i := range int32(passingPartitions) {
			tp := protocol.TopicPartition{Topic: passingName, Partition: i}
			p := &producer{s: s, random: s.random.Fork(), tp: tp, leader: 1}
			s.producers = append(s.producers, p)
			p.later(p.next)
			s.read(tp)
		}
	}
}

// admin makes the topics, and then writes metadata that changes nothing.
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
	a.s.After(a.random.Between(10*time.Millisecond, 100*time.Millisecond), "the admin creates topics", func() {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Version, req.TimeoutMillis = 7, 1000
		for _, name := range topics {
			topic := broker.InternalTopic(a.s.machines[0].config, name)
			if name == topicName {
				topic = kmsg.NewCreateTopicsRequestTopic()
				topic.Topic, topic.NumPartitions, topic.ReplicationFactor = topicName, int32(a.s.plan.partitions), replicas
			}
			if name != protocol.TransactionStateTopic { // which has it
				config, value := kmsg.NewCreateTopicsRequestTopicConfig(), fmt.Sprint(minISR)
				config.Name, config.Value = "min.insync.replicas", &value
				topic.Configs = append(topic.Configs, config)
			}
			req.Topics = append(req.Topics, topic)
		}
		a.ask(req, func(resp kmsg.Response, err error) {
			created, ok := resp.(*kmsg.CreateTopicsResponse)
			if err != nil || !ok || len(created.Topics) != len(topics) {
				a.create()
				return
			}
			for i := range created.Topics {
				if code := protocol.ErrorCode(created.Topics[i].ErrorCode); code != protocol.None && code != protocol.TopicAlreadyExists {
					a.create()
					return
				}
			}
			a.s.created = true
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

// shift has another replica lead a partition, while its leader lives on: the order of the replicas is changed, and the first of them
// is elected.
func (a *admin) shift() {
	a.s.After(a.random.Between(5*time.Millisecond, a.s.plan.shift), "the admin moves a leader", func() {
		if a.s.ending {
			return
		}
		tp := protocol.TopicPartition{Topic: seeded.Pick(a.random, topics...), Partition: int32(a.random.Below(2))}
		order := []int32{1, 2, 3, 4}[:a.s.plan.machines]
		seeded.Shuffle(a.random, order)
		if a.s.plan.reassigns {
			tp, order = a.reassign(tp, order)
		}
		req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
		topic, partition := kmsg.NewAlterPartitionAssignmentsRequestTopic(), kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
		topic.Topic, partition.Partition, partition.Replicas = tp.Topic, tp.Partition, order
		topic.Partitions = append(topic.Partitions, partition)
		req.Topics, req.TimeoutMillis = append(req.Topics, topic), 1000
		a.ask(req, func(kmsg.Response, error) {
			elect := kmsg.NewPtrElectLeadersRequest()
			elect.Topics, elect.TimeoutMillis = append(elect.Topics, kmsg.ElectLeadersRequestTopic{Topic: tp.Topic, Partitions: []int32{tp.Partition}}), 1000
			a.ask(elect, func(kmsg.Response, error) { a.shift() })
		})
	})
}

// producer sends one record after the other with values of its own, each again until it is acknowledged.
type producer struct {
	s      *Simulation
	random *seeded.Random
	tp     protocol.TopicPartition
	topic  protocol.TopicID // that the value is for
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
	if p.tp.Topic == passingName {
		topic := p.s.controllers.truth.loader.Image().Topic(passingName)
		if topic == nil {
			p.later(p.next)
			return
		}
		p.topic, p.value = topic.ID, topic.ID.String()+" "+p.value
	}
	p.send()
}

func (p *producer) send() {
	topic := p.s.controllers.truth.loader.Image().Topic(p.tp.Topic)
	state := p.s.controllers.truth.loader.Image().Partition(p.tp)
	if topic == nil || state == nil {
		if p.s.ending {
			p.done = true
			return
		}
		if p.topic != (protocol.TopicID{}) {
			p.later(p.next)
			return
		}
		p.later(p.send)
		return
	}
	id := topic.ID
	if p.topic != (protocol.TopicID{}) {
		id = p.topic // though there may be another by now
	}
	if p.random.Chance(700) && state.Leader > 0 {
		p.leader = int(state.Leader)
	}
	value := p.value
	req := produceRequest(id, p.tp.Partition, record.PlainOptions(), p.s.Now, value)
	p.s.ask(clientEnd, p.leader, req, func(frame []byte, err error) {
		if err == nil {
			var resp kmsg.Response
			_, resp, err = wire.ReadResponse(frame, req)
			must(err)
			answer := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
			if protocol.ErrorCode(answer.ErrorCode) == protocol.UnknownTopicID && p.topic != (protocol.TopicID{}) {
				p.later(p.next)
				return
			}
			if answer.ErrorCode == 0 {
				p.s.acked = append(p.s.acked, acknowledged{p.tp, id, protocol.Offset(answer.BaseOffset), value})
				p.s.Linef("acknowledged: %s %d %s", p.tp, answer.BaseOffset, value)
				p.later(p.next)
				return
			}
		}
		if p.leader = 1 + p.random.Below(len(p.s.machines)); p.random.Chance(200) {
			p.later(p.next) // it is given up
			return
		}
		p.later(p.send)
	})
}

// produceRequest is for one record, to be acknowledged by all.
func produceRequest(topic protocol.TopicID, partition int32, o record.Options, now time.Time, value string) *kmsg.ProduceRequest {
	b := record.NewBuilder(o)
	b.Append(now.UnixMilli(), nil, []byte(value), nil)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 700
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = topicName, topic
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = partition, b.Build(nil)
	t.Partitions = append(t.Partitions, part)
	req.Topics = append(req.Topics, t)
	return req
}
