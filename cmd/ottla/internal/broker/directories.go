package broker

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// maxReported bounds the partitions of one AssignReplicasToDirs.
const maxReported = 2250

// topicIDPartition names a partition by its topic's id.
type topicIDPartition struct {
	topic     protocol.TopicID
	partition int32
}

// DirectoryReports tells the controller in which directory a replica lies when
// it was not the controller that chose it (KIP-858).
type DirectoryReports struct {
	nodeID protocol.NodeID
	epoch  func() protocol.BrokerEpoch
	send   Send
	wake   func()

	mu      sync.Mutex
	wanted  map[topicIDPartition]protocol.DirectoryID
	waiting bool
	failed  bool
	next    time.Time
}

// NewDirectoryReports makes an empty queue of reports.
func NewDirectoryReports(nodeID protocol.NodeID, epoch func() protocol.BrokerEpoch, send Send, wake func()) *DirectoryReports {
	return &DirectoryReports{
		nodeID: nodeID, epoch: epoch, send: send, wake: wake, wanted: map[topicIDPartition]protocol.DirectoryID{},
	}
}

// Report queues the directory of a replica; a later report replaces it.
func (d *DirectoryReports) Report(topic protocol.TopicID, partition int32, directory protocol.DirectoryID) {
	d.mu.Lock()
	d.wanted[topicIDPartition{topic, partition}] = directory
	d.mu.Unlock()
	d.wake()
}

// NextDeadline tells when Tick has something to do.
func (d *DirectoryReports) NextDeadline(now time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.failed:
		return now
	case d.waiting || len(d.wanted) == 0 || d.epoch() < 0:
		return time.Time{}
	case d.next.IsZero():
		return now
	default:
		return d.next
	}
}

// Tick sends what is queued, one request at a time.
func (d *DirectoryReports) Tick(now time.Time) {
	d.mu.Lock()
	if d.failed {
		d.failed, d.next = false, now.Add(retryInterval)
	}
	epoch := d.epoch()
	if d.waiting || len(d.wanted) == 0 || epoch < 0 || now.Before(d.next) {
		d.mu.Unlock()
		return
	}
	d.waiting = true
	sent := d.take()
	d.mu.Unlock()
	d.send(d.request(epoch, sent), func(response kmsg.Response, err error) { d.receive(sent, response, err) })
}

type directoryReport struct {
	topicIDPartition
	directory protocol.DirectoryID
}

// take removes the first reports in the order of directory, topic, partition.
func (d *DirectoryReports) take() []directoryReport {
	reports := make([]directoryReport, 0, len(d.wanted))
	for at, directory := range d.wanted {
		reports = append(reports, directoryReport{at, directory})
	}
	slices.SortFunc(reports, func(a, b directoryReport) int {
		return cmp.Or(slices.Compare(a.directory[:], b.directory[:]), slices.Compare(a.topic[:], b.topic[:]), cmp.Compare(a.partition, b.partition))
	})
	reports = reports[:min(len(reports), maxReported)]
	for _, report := range reports {
		delete(d.wanted, report.topicIDPartition)
	}
	return reports
}

func (d *DirectoryReports) request(epoch protocol.BrokerEpoch, reports []directoryReport) kmsg.Request {
	req := kmsg.NewPtrAssignReplicasToDirsRequest()
	req.BrokerID, req.BrokerEpoch = int32(d.nodeID), int64(epoch)
	for _, report := range reports {
		if n := len(req.Directories); n == 0 || req.Directories[n-1].ID != report.directory {
			directory := kmsg.NewAssignReplicasToDirsRequestDirectory()
			directory.ID = report.directory
			req.Directories = append(req.Directories, directory)
		}
		directory := &req.Directories[len(req.Directories)-1]
		if n := len(directory.Topics); n == 0 || directory.Topics[n-1].TopicID != report.topic {
			topic := kmsg.NewAssignReplicasToDirsRequestDirectoryTopic()
			topic.TopicID = report.topic
			directory.Topics = append(directory.Topics, topic)
		}
		topic := &directory.Topics[len(directory.Topics)-1]
		partition := kmsg.NewAssignReplicasToDirsRequestDirectoryTopicPartition()
		partition.Partition = report.partition
		topic.Partitions = append(topic.Partitions, partition)
	}
	return req
}

// receive queues everything again after a failure, unless a later report is
// there already. A partition that the controller does not know needs none.
func (d *DirectoryReports) receive(sent []directoryReport, response kmsg.Response, err error) {
	assigned, ok := response.(*kmsg.AssignReplicasToDirsResponse)
	d.mu.Lock()
	d.waiting = false
	if err != nil || !ok || assigned.ErrorCode != 0 {
		d.failed = true
		for _, report := range sent {
			if _, later := d.wanted[report.topicIDPartition]; !later {
				d.wanted[report.topicIDPartition] = report.directory
			}
		}
	}
	d.mu.Unlock()
	d.wake()
}
