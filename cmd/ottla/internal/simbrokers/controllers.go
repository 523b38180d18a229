package simbrokers

import (
	"fmt"
	"io"
	"os"
	"path"
	"reflect"
	"regexp"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/node"
	"ottla/cmd/ottla/internal/offline"
	"ottla/cmd/ottla/internal/seeded"
	"ottla/controller/cluster"
	"ottla/controller/config"
	"ottla/controller/metadata"
	"ottla/controller/quorum"
	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

const (
	controllerDir = "/c"
	metadataLog   = controllerDir + "/__cluster_metadata-0"
	clusterID     = "q1Sh-9_ISia_zwGINzRvyQ"
)

// controllers is the model of a quorum of three. Each leader is a real quorum with one voter over a disk of its own. What it
// writes is committed when the others have it, which the simulation decides; the disk as it was at that moment is what
// the majority has. The next leader begins with that, or with what its predecessor had written besides.
type controllers struct {
	s        *Simulation
	random   *seeded.Random
	config   *config.BrokerConfig
	members  [members]member
	active   *leader  // nil: nobody leads
	latest   *leader  // who led last; what it has decided may still be committed
	majority *vfs.Mem // what a majority of them has durably
	epoch    protocol.LeaderEpoch
	truth    truth
}

// member is what one of them knows and is.
type member struct {
	leader int // -1: not known
	epoch  protocol.LeaderEpoch
	leads  *leader // it is that leader, or believes so
}

// leader is a controller in the epoch that it leads.
type leader struct {
	c         *controllers
	index     int
	epoch     protocol.LeaderEpoch
	disk      *vfs.Mem
	quorum    *quorum.Quorum
	core      *cluster.Controller
	position  int64 // in the file of the log, up to which it is in log
	log       []record.Batch
	end       protocol.Offset
	committed protocol.Offset // as it knows; NoOffset until something of its epoch is
	start     protocol.Offset // what is before was given up: there is a snapshot
	deposed   bool            // another leads, or will
	held      []held
	parked    []func()
}

// held is a reply that waits for what was decided before it.
type held struct {
	end   protocol.Offset
	reply func()
}

func newControllers(s *Simulation) *controllers {
	c := &controllers{s: s, random: s.random.Fork(), truth: newTruth()}
	properties, err := config.FromOverrides([]string{
		"process.roles=broker,controller", "node.id=100", "listeners=PLAINTEXT://c:9092,CONTROLLER://c:9093", "controller.listener.names=CONTROLLER",
		"controller.quorum.voters=100@c:9093", "log.dirs=" + controllerDir,
	})
	must(err)
	c.config, _, err = config.Broker(properties)
	must(err)
	c.majority = vfs.NewMem(c.random.Fork().Next)
	must(c.majority.MkdirAll(controllerDir))
	must(offline.Format(s.Now, c.majority, c.random.Fork().Next, offline.FormatOptions{
		ClusterID: clusterID, NodeID: 100, Dirs: []string{controllerDir}, Controller: true, StaticVoters: true,
		DefaultFeatures: append(node.DefaultFeatures(), offline.Feature{Name: metadata.ELRVersionFeature, Level: 1}),
	}, io.Discard))
	for i := range c.members {
		c.members[i].leader = -1
	}
	c.lead(0, c.majority.Kill())
	c.tick()
	return c
}

func (c *controllers) tick() {
	c.s.After(20*time.Millisecond, "controllers look around", func() {
		for i := range c.members {
			if l := c.members[i].leads; l != nil {
				l.enter(func() { l.quorum.Tick(c.s.Now) })
			}
		}
		c.tick()
	})
}

var epochInState = regexp.MustCompile(`"leaderEpoch":\d+`)

// lead begins an epoch that nobody has led, on a disk. The voters have told the epochs that they know of.
func (c *controllers) lead(index int, disk *vfs.Mem) {
	state := metadataLog + "/quorum-state"
	if text, err := vfs.ReadFile(disk, state); err == nil {
		text = epochInState.ReplaceAll(text, fmt.Appendf(nil, `"leaderEpoch":%d`, c.epoch))
		must(vfs.WriteFileAtomic(disk, state, text))
	}
	id := protocol.NodeID(firstController + index)
	l := &leader{c: c, index: index, disk: disk, committed: protocol.NoOffset}
	features := map[string]cluster.Range{metadata.ELRVersionFeature: {Min: 0, Max: 1}}
	for name, served := range node.ServedFeatures {
		features[name] = served
	}
	random := c.random.Fork().Next
	l.core = cluster.New(cluster.Options{
		NodeID: id, ClusterID: clusterID, Config: c.config, SessionTimeout: c.s.plan.session, Features: features, Random: random,
	})
	options := quorum.Options{
		Env: log.Env{FS: disk, Files: segment.NewFileCache(disk, 16), Pool: compress.NewPool(), Random: random},
		Dir: controllerDir, Local: raft.ReplicaKey{ID: id}, Trust: log.OtherBoot,
		Machine:      withISR{l.core, c.s},
		StaticVoters: raft.NewVoterSet(raft.Voter{ReplicaKey: raft.ReplicaKey{ID: id}, Endpoints: []raft.Endpoint{l.endpoint()}}),
		Endpoints:    []raft.Endpoint{l.endpoint()},
		SegmentBytes: 1 << 30, SegmentAge: time.Hour, SnapshotBytes: c.s.plan.snapshot, RetentionBytes: -1, RetentionAge: -1,
		OnFatal: func(err error) { c.s.Violate("controller %d cannot go on: %v", id, err) }, Logger: c.s.logger,
	}
	var err error
	if l.quorum, err = quorum.Open(c.s.Now, options); err != nil {
		c.s.Violate("controller %d does not start: %v", id, err)
		return
	}
	c.active, c.latest = l, l
	c.members[index] = member{leader: index, leads: l}
	l.enter(func() { must(l.quorum.Start(c.s.Now)) })
	l.epoch = l.quorum.Status().Epoch
	if l.epoch <= c.epoch {
		c.s.Violate("controller %d leads epoch %d, after %d", id, l.epoch, c.epoch)
	}
	c.epoch, c.members[index].epoch = l.epoch, l.epoch
	c.s.Linef("controller %d leads epoch %d with a log up to %d, %d are committed", id, l.epoch, l.end, c.truth.end)
	for i := range c.members {
		if i != index {
			c.s.After(c.random.Between(0, time.Second), "a controller hears who leads", func() { c.hears(i, l) })
		}
	}
}

// hears tells a member who leads; a former leader gives up then.
func (c *controllers) hears(index int, of *leader) {
	m := &c.members[index]
	if of.epoch <= m.epoch {
		return
	}
	if m.leads != nil {
		m.leads.wake() // and answer no more
	}
	*m = member{leader: of.index, epoch: of.epoch}
}

// failover has another member lead, or the same again after a restart.
func (c *controllers) failover() {
	former := c.active
	if former == nil {
		return
	}
	c.active, former.deposed = nil, true
	c.s.counts.Failovers++
	dies := c.random.Chance(500)
	if dies {
		c.members[former.index] = member{leader: -1, epoch: former.epoch}
	}
	c.s.Linef("controller %d leads no more (dies %t) with a log up to %d", firstController+former.index, dies, former.end)
	whole := c.random.Chance(400) // the others have all that it has written
	rest := former.disk.Kill()
	c.s.After(c.random.Between(5*time.Millisecond, 800*time.Millisecond), "controllers elect", func() {
		disk := c.majority.Kill()
		if whole {
			disk = rest
		} else {
			for _, b := range former.log {
				if b.BaseOffset() >= c.truth.end {
					c.s.counts.Lost++
				}
			}
		}
		index := c.random.Below(members)
		if index == former.index && !dies {
			index = (index + 1) % members
		}
		c.lead(index, disk)
	})
}

func (l *leader) endpoint() raft.Endpoint {
	return raft.Endpoint{Name: "CONTROLLER", Host: "c", Port: uint16(firstController + l.index)}
}

// enter runs a call of the quorum, and then has what it has written committed, sooner or later.
func (l *leader) enter(run func()) {
	run()
	if !l.read() {
		return
	}
	l.wake()
	if l.deposed {
		return
	}
	end, disk := l.end, l.disk.Kill()
	l.c.s.After(l.c.random.Between(0, l.c.s.plan.commit), "controllers have a batch", func() {
		if l.c.active == l && end > l.committed {
			l.commit(end, disk)
		}
	})
}

// read takes in what was written since.
func (l *leader) read() bool {
	file, err := l.disk.OpenFile(path.Join(metadataLog, fmt.Sprintf("%020d.log", 0)), os.O_RDONLY)
	must(err)
	defer file.Close()
	size, err := file.Size()
	must(err)
	if size == l.position {
		return false
	}
	content := make([]byte, size-l.position)
	_, err = file.ReadAt(content, l.position)
	must(err)
	l.position = size
	for len(content) > 0 {
		batch, rest, err := record.Next(content)
		must(err)
		l.log, l.end, content = append(l.log, batch), batch.NextOffset(), rest
	}
	return true
}

// commit: the others have the log up to end.
func (l *leader) commit(end protocol.Offset, disk *vfs.Mem) {
	for _, b := range l.log {
		if b.BaseOffset() < end {
			l.c.truth.commit(l.c.s, b)
		}
	}
	l.committed, l.c.majority = end, disk
	if id, found := l.newest(); found && id.End > l.start && l.c.random.Chance(l.c.s.plan.forget) {
		l.start = id.End
	}
	waiting := l.held
	l.held = nil
	for _, h := range waiting {
		if h.end > end {
			l.held = append(l.held, h)
			continue
		}
		h.reply()
	}
	l.wake()
}

func (l *leader) wake() {
	parked := l.parked
	l.parked = nil
	for _, again := range parked {
		again()
	}
}

// serve answers a request of a broker or a client at a member.
func (c *controllers) serve(end int, req kmsg.Request, reply func(any)) {
	index := end - firstController
	switch req := req.(type) {
	case *kmsg.FetchRequest:
		c.fetch(index, req, c.s.Now.Add(time.Duration(req.MaxWaitMillis)*time.Millisecond), reply)
		return
	case *kmsg.FetchSnapshotRequest:
		reply(c.fetchSnapshot(index, req))
		return
	case *kmsg.BrokerRegistrationRequest:
		c.s.registers(req)
	}
	l := c.members[index].leads
	if l == nil {
		reply(refusal(req, protocol.NotController))
		return
	}
	var resp kmsg.Response
	l.enter(func() {
		l.quorum.Submit(c.s.Now, cluster.Request{Message: req}, func(answer any, err error) {
			if err != nil {
				resp = refusal(req, protocol.CodeOf(err))
				return
			}
			resp = answer.(kmsg.Response)
		})
	})
	if l.end <= l.committed {
		reply(resp)
		return
	}
	l.held = append(l.held, held{l.end, func() { reply(resp) }})
}

// refusal is a response that says no more than a code.
func refusal(req kmsg.Request, code protocol.ErrorCode) kmsg.Response {
	resp := req.ResponseKind()
	if field := reflect.ValueOf(resp).Elem().FieldByName("ErrorCode"); field.IsValid() {
		field.SetInt(int64(code))
	}
	return resp
}
