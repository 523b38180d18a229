package node_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/replica"
	"ottla/storage/space"
)

const mebibyte = 1 << 20

// free is what the file system says.
func (s *stepped) free() int64 {
	s.Helper()
	_, usable, err := s.disk.Usage("/data")
	s.must(err)
	return usable
}

// occupy has another program leave so many bytes free; it gives them back with remove.
func (s *stepped) occupy(leave int64) (remove func()) {
	s.Helper()
	file, err := s.disk.OpenFile("/other", os.O_RDWR|os.O_CREATE)
	s.must(err)
	s.must(file.Truncate(s.free() - leave))
	s.must(file.Close())
	return func() { s.must(s.disk.Remove("/other")) }
}

// becomes runs the node until its directory is in a state.
func (s *stepped) becomes(want space.State) {
	s.Helper()
	s.run(10*time.Second, func() bool { return s.node.Space("/data").State() == want })
}

// appendResult is append with all that is told.
func (s *stepped) appendResult(topic string, batch []byte) (result replica.AppendResult) {
	s.Helper()
	s.node.Replicas().Append(s.now, replica.AppendRequest{
		Partition: protocol.TopicPartition{Topic: topic}, Records: batch, Origin: log.OriginClient, RequiredAcks: replica.AcksAll, Timeout: time.Second,
	}, func(is replica.AppendResult) { result = is })
	return result
}

func (s *stepped) remove(topic string) {
	s.Helper()
	remove := kmsg.NewPtrDeleteTopicsRequest()
	remove.Version, remove.TimeoutMillis = 6, 1000
	name := kmsg.NewDeleteTopicsRequestTopic()
	name.Topic = kmsg.StringPtr(topic)
	remove.Topics = append(remove.Topics, name)
	s.change(remove)
}

// set sets a run-time setting for all brokers.
func (s *stepped) set(name, value string) {
	s.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType = kmsg.ConfigResourceTypeBroker
	one := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	one.Name, one.Value = name, &value
	resource.Configs = append(resource.Configs, one)
	req.Resources = append(req.Resources, resource)
	s.node.Submit(s.now, req, func(resp kmsg.Response, err error) {
		s.must(err)
		if r := resp.(*kmsg.IncrementalAlterConfigsResponse).Resources[0]; r.ErrorCode != 0 {
			s.Fatalf("%s=%s: %d %v", name, value, r.ErrorCode, r.ErrorMessage)
		}
	})
}

// TestNearlyFullDisk: before the disk is full clients are told, and all else goes on; it ends by itself.
func TestNearlyFullDisk(t *testing.T) {
	s := newStepped(t)
	s.bootWithGroups()
	quick, value := kmsg.NewCreateTopicsRequestTopicConfig(), "100"
	quick.Name, quick.Value = "file.delete.delay.ms", &value
	orders := kmsg.NewCreateTopicsRequestTopic()
	orders.Topic, orders.NumPartitions, orders.ReplicationFactor, orders.Configs = "orders", 1, 1, append(orders.Configs, quick)
	s.change(topicRequest(orders))
	s.topic("bills", 1)
	s.disk.SetCapacity(64 * mebibyte)
	s.run(2*time.Second, func() bool { total, _, _, _ := s.node.Space("/data").Usage(); return total == 64*mebibyte })

	// No time passes, so nobody looks: what is appended is counted.
	appended := 0
	for s.append("orders", batchAt(s.now, mebibyte/2)) == protocol.None {
		appended++
	}
	_, _, mark, _ := s.node.Space("/data").Usage()
	if left := s.free(); left < mark || left > mark+mebibyte {
		t.Errorf("after %d batches %d bytes are free, the mark is %d", appended, left, mark)
	}
	refused := s.appendResult("bills", batchAt(s.now, 10))
	if protocol.CodeOf(refused.Err) != protocol.KafkaStorageError || !strings.Contains(refused.Err.Error(), "the disk of /data is nearly full") {
		t.Errorf("%v", refused.Err)
	}
	s.commit("g", "orders", 3)
	if s.consume("orders", 0) == 0 {
		t.Error("nothing can be read")
	}
	s.topic("made", 1)
	s.run(5*time.Second, func() bool { return s.node.Space("/data").State() == space.Low && s.free() > 0 })
	page := s.scrape(s.collector())
	page.want(`ottla_log_directory_space_state{logdirectory="/data"}`, 1)
	page.want(`ottla_log_directory_total_bytes{logdirectory="/data"}`, 64*mebibyte)
	s.remove("orders")
	s.becomes(space.Roomy)
	if code := s.append("bills", batchAt(s.now, 10)); code != protocol.None {
		t.Errorf("with room again: %s", code)
	}
	if got := s.committed("g"); len(got) != 0 { // as its topic
		t.Errorf("committed are %v", got)
	}

	// Others fill the disk: the reserve is for the metadata log.
	give := s.occupy(mebibyte / 2)
	s.becomes(space.Critical)
	if code := s.append("bills", batchAt(s.now, 10)); code != protocol.KafkaStorageError {
		t.Errorf("at the reserve: %s", code)
	}
	s.topic("made-too", 1)
	give()
	s.becomes(space.Roomy)
	s.run(10*time.Second, func() bool {
		_, active, _ := s.node.Groups().Counts()
		return active == 50
	})
	s.commit("g", "bills", 1)

	// The marks can be changed while it runs.
	s.set("ottla.disk.free.bytes", "67108864")
	s.becomes(space.Low)
	if code := s.append("bills", batchAt(s.now, 10)); code != protocol.KafkaStorageError {
		t.Errorf("below a raised mark: %s", code)
	}
	s.set("ottla.disk.free.bytes", "0")
	s.becomes(space.Roomy)
	if code := s.append("bills", batchAt(s.now, 10)); code != protocol.None {
		t.Errorf("without a mark: %s", code)
	}
}

// TestRefusedInOrder: of an idempotent producer's batches in flight none is lost or told anything but to come again, and a
// repeat of what is in the log is answered even when the disk is nearly full.
func TestRefusedInOrder(t *testing.T) {
	s := newStepped(t)
	s.boot()
	s.topic("orders", 1)
	batch := func(sequence int32) []byte {
		o := record.PlainOptions()
		o.ProducerID, o.ProducerEpoch, o.BaseSequence = 5, 0, sequence
		b := record.NewBuilder(o)
		b.Append(s.now.UnixMilli(), nil, []byte("value"), nil)
		return b.Build(compress.NewPool())
	}
	if r := s.appendResult("orders", batch(0)); r.Err != nil {
		t.Fatal(r.Err)
	}
	s.disk.SetCapacity(64 * mebibyte)
	give := s.occupy(mebibyte)
	s.becomes(space.Low)
	for sequence := int32(1); sequence < 4; sequence++ {
		if r := s.appendResult("orders", batch(sequence)); protocol.CodeOf(r.Err) != protocol.KafkaStorageError {
			t.Errorf("%d: %v", sequence, r.Err)
		}
	}
	if r := s.appendResult("orders", batch(0)); r.Err != nil || r.BaseOffset != 0 {
		t.Errorf("the repeat: %v at %d", r.Err, r.BaseOffset)
	}
	give()
	s.becomes(space.Roomy)
	for sequence := int32(1); sequence < 4; sequence++ {
		if r := s.appendResult("orders", batch(sequence)); r.Err != nil || r.BaseOffset != protocol.Offset(sequence) {
			t.Errorf("%d: %v at %d", sequence, r.Err, r.BaseOffset)
		}
	}
}
