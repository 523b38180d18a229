package metadata

import (
	"bytes"
	"encoding/hex"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/schema"
)

const apache = "testdata/apache-4.4.0"

// batches reads a log or snapshot file of Kafka's.
func batches(t testing.TB, file string) []record.Batch {
	t.Helper()
	rest, err := os.ReadFile(filepath.Join(apache, file))
	if err != nil {
		t.Fatal(err)
	}
	var all []record.Batch
	for len(rest) > 0 {
		var batch record.Batch
		if batch, rest, err = record.Next(rest); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, batch)
	}
	return all
}

func batchValues(t testing.TB, batch record.Batch) [][]byte {
	t.Helper()
	var all [][]byte
	if batch.IsControl() {
		return nil
	}
	for r, err := range record.Records(batch, nil, 1<<20) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, bytes.Clone(r.Value))
	}
	return all
}

func toBatch(t testing.TB, batch record.Batch) Batch {
	return Batch{
		BaseOffset: batch.BaseOffset(), LastOffset: batch.LastOffset(), Epoch: batch.PartitionLeaderEpoch(),
		TimestampMs: batch.MaxTimestamp(), Values: batchValues(t, batch),
	}
}

func snapshotValues(t testing.TB, file string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, batch := range batches(t, file) {
			for _, value := range batchValues(t, batch) {
				if !yield(value, nil) {
					return
				}
			}
		}
	}
}

func onlyValues(all [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, value := range all {
			if !yield(value, nil) {
				return
			}
		}
	}
}

const formatted = "00000000000000000000-0000000000.checkpoint"

// snapshots gives the snapshots that Kafka took by itself.
func snapshots(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(apache + "/*.checkpoint")
	if err != nil || len(files) < 2 {
		t.Fatalf("the goldens have no snapshots: %v, %v", files, err)
	}
	slices.Sort(files)
	var names []string
	for _, file := range files[1:] {
		names = append(names, filepath.Base(file))
	}
	return names
}

func loadSnapshot(t testing.TB, file string) *Image {
	t.Helper()
	_, image, err := NewLoader().LoadSnapshot(Provenance{Offset: -1}, snapshotValues(t, file))
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// replayLog applies the log after the format's snapshot and calls each with
// every published Image; it gives the last.
func replayLog(t testing.TB, each func(*Delta, *Image)) *Image {
	t.Helper()
	loader := NewLoader()
	if _, _, err := loader.LoadSnapshot(Provenance{Offset: -1}, snapshotValues(t, formatted)); err != nil {
		t.Fatal(err)
	}
	for _, batch := range batches(t, "00000000000000000000.log") {
		delta, image, err := loader.Apply(toBatch(t, batch))
		if err != nil {
			t.Fatal(err)
		}
		if image != nil && each != nil {
			each(delta, image)
		}
	}
	return loader.Image()
}

// recordValues writes an Image out as a snapshot.
func recordValues(image *Image) [][]byte {
	var all [][]byte
	image.Records(image.MetadataVersion(), func(r schema.MetadataRecord, version int16) {
		all = append(all, schema.EncodeMetadata(r, version))
	})
	return all
}

// inOrder gives records with their inner lists sorted, as lines sorted: Kafka
// writes hash maps in no order.
func inOrder(t testing.TB, values [][]byte) []string {
	t.Helper()
	var lines []string
	for _, value := range values {
		r, version, err := schema.DecodeMetadata(value)
		if err != nil {
			t.Fatal(err)
		}
		switch r := r.(type) {
		case *schema.RegisterBrokerRecord:
			slices.SortFunc(r.Features, func(a, b schema.BrokerFeature) int { return strings.Compare(a.Name, b.Name) })
			slices.SortFunc(r.EndPoints, func(a, b schema.BrokerEndpoint) int { return strings.Compare(a.Name, b.Name) })
		case *schema.RegisterControllerRecord:
			slices.SortFunc(r.Features, func(a, b schema.ControllerFeature) int { return strings.Compare(a.Name, b.Name) })
		case *schema.ClientQuotaRecord:
			slices.SortFunc(r.Entity, func(a, b schema.ClientQuotaEntity) int { return strings.Compare(a.EntityType, b.EntityType) })
		}
		lines = append(lines, schema.JSON(r, version))
	}
	slices.Sort(lines)
	return lines
}

func goldenImage(t testing.TB, file string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(apache, file))
	if err != nil {
		t.Fatal(err)
	}
	var values [][]byte
	for _, line := range strings.Fields(string(text)) {
		value, err := hex.DecodeString(line)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
	}
	return inOrder(t, values)
}

func compareLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("%s: missing %s", what, line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("%s: too much: %s", what, line)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d records and not %d", what, len(got), len(want))
	}
}

// TestApacheLog replays what Kafka wrote and compares with Kafka's own replay.
func TestApacheLog(t *testing.T) {
	image := replayLog(t, nil)
	compareLines(t, "the log", inOrder(t, recordValues(image)), goldenImage(t, "log.image"))
}

// TestApacheLogHasEverything asks that the golden's scenario is not hollow.
func TestApacheLogHasEverything(t *testing.T) {
	seen := map[string]int{}
	for _, batch := range batches(t, "00000000000000000000.log") {
		for _, value := range batchValues(t, batch) {
			r, _, err := schema.DecodeMetadata(value)
			if err != nil {
				t.Fatal(err)
			}
			seen[schema.TypeName(r)]++
		}
	}
	for _, name := range []string{
		"BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD", "FEATURE_LEVEL_RECORD", "REGISTER_BROKER_RECORD",
		"REGISTER_CONTROLLER_RECORD", "BROKER_REGISTRATION_CHANGE_RECORD", "TOPIC_RECORD", "REMOVE_TOPIC_RECORD",
		"PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "CONFIG_RECORD", "CLIENT_QUOTA_RECORD", "PRODUCER_IDS_RECORD",
		"ACCESS_CONTROL_ENTRY_RECORD", "REMOVE_ACCESS_CONTROL_ENTRY_RECORD", "USER_SCRAM_CREDENTIAL_RECORD",
		"REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
	} {
		if seen[name] == 0 {
			t.Errorf("the log has no %s: %v", name, seen)
		}
	}
}

func TestApacheSnapshots(t *testing.T) {
	for _, file := range snapshots(t) {
		image := loadSnapshot(t, file)
		compareLines(t, file, inOrder(t, recordValues(image)), goldenImage(t, file+".image"))

		var end protocol.Offset
		for _, digit := range file[:20] {
			end = end*10 + protocol.Offset(digit-'0')
		}
		replayed := (*Image)(nil)
		replayLog(t, func(_ *Delta, i *Image) {
			if i.Provenance().Offset == end-1 {
				replayed = i
			}
		})
		if replayed == nil {
			t.Fatalf("no batch ends before offset %d", end)
		}
		compareLines(t, file+" against the log", inOrder(t, recordValues(image)), inOrder(t, recordValues(replayed)))
	}
}

// TestSnapshotOfEveryImage writes every Image of the log out and reads it back.
func TestSnapshotOfEveryImage(t *testing.T) {
	count := 0
	replayLog(t, func(_ *Delta, image *Image) {
		if image.MetadataVersion() == 0 {
			return
		}
		_, again, err := NewLoader().LoadSnapshot(image.Provenance(), onlyValues(recordValues(image)))
		if err != nil {
			t.Fatal(err)
		}
		if changes := Diff(image, again); !changes.Empty() || !again.Equal(image) {
			t.Errorf("the image of offset %d comes back different: %+v", image.Provenance().Offset, changes)
		}
		if image.PartitionCount() != again.PartitionCount() || image.Provenance() != again.Provenance() {
			t.Errorf("offset %d: %d partitions come back as %d", image.Provenance().Offset, image.PartitionCount(), again.PartitionCount())
		}
		count++
	})
	if count < 20 {
		t.Errorf("only %d images were published", count)
	}
}

// TestOldImagesStay keeps every Image of the log and looks at the end whether
// each is still what it was.
func TestOldImagesStay(t *testing.T) {
	var images []*Image
	var before [][]string
	replayLog(t, func(_ *Delta, image *Image) {
		images = append(images, image)
		before = append(before, inOrder(t, recordValues(image)))
	})
	for i, image := range images {
		if !slices.Equal(inOrder(t, recordValues(image)), before[i]) {
			t.Errorf("the image of offset %d changed after it was published", image.Provenance().Offset)
		}
	}
}

// TestDeltasSum applies what each Delta reports to a plain model of names and
// partition epochs and compares the model with the Image.
func TestDeltasSum(t *testing.T) {
	epochs := map[string]map[int32]int32{}
	replayLog(t, func(delta *Delta, image *Image) {
		for _, topic := range delta.DeletedTopics() {
			delete(epochs, topic.Name)
		}
		for _, change := range delta.ChangedTopics() {
			if change.Old == nil {
				epochs[change.New.Name] = map[int32]int32{}
			}
			for _, n := range change.Partitions {
				epochs[change.New.Name][n] = change.New.Partition(n).PartitionEpoch
			}
		}
		if len(epochs) != image.TopicCount() {
			t.Fatalf("at offset %d the deltas add up to %d topics, and there are %d", image.Provenance().Offset, len(epochs), image.TopicCount())
		}
		for topic := range image.Topics() {
			for n, partition := range topic.Partitions() {
				if epoch, ok := epochs[topic.Name][n]; !ok || epoch != partition.PartitionEpoch {
					t.Fatalf("at offset %d the change of %s-%d was not reported", image.Provenance().Offset, topic.Name, n)
				}
			}
		}
	})
}

func TestApacheContent(t *testing.T) {
	image := replayLog(t, nil)
	if v := image.MetadataVersion(); v.String() != "4.4-IV2" {
		t.Errorf("metadata.version is %v", v)
	}
	if image.Feature(StreamsVersionFeature) != 0 || image.Feature(ShareVersionFeature) != 2 {
		t.Errorf("the features are %v", image.Features())
	}
	if image.Topic("short-lived") != nil || image.Config(TopicConfig, "short-lived") != nil {
		t.Error("a deleted topic or its configs are still there")
	}
	orders := image.Topic("orders")
	if orders == nil || orders.PartitionCount() != 5 || image.TopicByID(orders.ID) != orders {
		t.Fatalf("orders is %+v", orders)
	}
	config := image.Config(TopicConfig, "orders")
	if config["max.message.bytes"] != "2000000" || config["min.insync.replicas"] != "2" || len(config) != 3 {
		t.Errorf("the configs of orders are %v", config)
	}
	if image.Config(TopicConfig, "payments") != nil {
		t.Error("configs that were all removed leave something behind")
	}
	if broker := image.Broker(2); broker == nil || !broker.Fenced || broker.Rack == nil || *broker.Rack != "r2" {
		t.Errorf("broker 2 died, and is %+v", broker)
	}
	if broker := image.Broker(1); broker == nil || len(broker.LogDirs) != 2 || broker.Endpoint("PLAINTEXT").Port != 29392 ||
		broker.Feature(MetadataVersionFeature).Max != 33 {
		t.Errorf("broker 1 is %+v", broker)
	}
	if image.Controller(1) == nil || image.NextProducerID() != 1000 {
		t.Errorf("controller 1 is %v, the next producer id is %d", image.Controller(1), image.NextProducerID())
	}
	if image.ACLCount() != 2 || image.ClientQuotaCount() != 4 {
		t.Errorf("%d ACLs, %d quotas", image.ACLCount(), image.ClientQuotaCount())
	}
	if image.ScramCredential(ScramKey{1, "alice"}) == nil || image.ScramCredential(ScramKey{2, "alice"}) == nil ||
		image.ScramCredential(ScramKey{2, "erin"}) != nil {
		t.Error("the SCRAM credentials of alice and erin are not what was asked for")
	}
	if p := image.Partition(protocol.TopicPartition{Topic: "orders", Partition: 0}); p == nil || p.HasReplica(9) || len(p.Directories) != 2 {
		t.Errorf("orders-0 is %+v", p)
	}
}

// TestDumpAsKafka prints the log's records and compares with what Kafka's
// DumpLogSegments prints of the same file.
func TestDumpAsKafka(t *testing.T) {
	want, err := os.ReadFile(filepath.Join(apache, "log.dump"))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, batch := range batches(t, "00000000000000000000.log") {
		for _, value := range batchValues(t, batch) {
			r, version, err := schema.DecodeMetadata(value)
			if err != nil {
				t.Fatal(err)
			}
			got.WriteString(schema.JSON(r, version) + "\n")
		}
	}
	if got.String() != string(want) {
		t.Errorf("printed\n%s\nand not\n%s", got.String(), want)
	}
}
