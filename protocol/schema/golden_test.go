package schema

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// golden is a line of testdata/records-4.4.0.tsv, whose README describes it.
type golden struct {
	log, name, kind, variant, json string
	key, version                   int16
	bytes                          []byte
}

func (g golden) String() string {
	return g.name + " v" + strconv.Itoa(int(g.version)) + " " + g.variant
}

func goldens(t testing.TB) []golden {
	t.Helper()
	file, err := os.Open("testdata/records-4.4.0.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []golden
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		columns := strings.Split(lines.Text(), "\t")
		key, err1 := strconv.ParseInt(columns[1], 10, 16)
		version, err2 := strconv.ParseInt(columns[4], 10, 16)
		raw, err3 := hex.DecodeString(columns[6])
		if err1 != nil || err2 != nil || err3 != nil {
			t.Fatalf("cannot read the golden %q", lines.Text())
		}
		all = append(all, golden{columns[0], columns[2], columns[3], columns[5], columns[7], int16(key), int16(version), raw})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// decode reads a golden's bytes as its log would.
func (g golden) decode(t testing.TB) Record {
	t.Helper()
	var record Record
	var err error
	version := g.version
	log := map[string]Log{"group": GroupLog, "transaction": TransactionLog, "share": ShareLog}[g.log]
	switch g.kind {
	case "metadata":
		record, version, err = DecodeMetadata(g.bytes)
	case "key":
		record, err = DecodeKey(log, g.bytes)
	case "value":
		record, version, err = DecodeValue(log, g.key, g.bytes)
	}
	if err != nil {
		t.Fatalf("%v: %v", g, err)
	}
	if version != g.version {
		t.Errorf("%v: decoded as version %d", g, version)
	}
	return record
}

func (g golden) encode(record Record) []byte {
	switch r := record.(type) {
	case MetadataRecord:
		return EncodeMetadata(r, g.version)
	case Key:
		return AppendKey(nil, r)
	}
	return AppendValue(nil, record.(Value), g.version)
}

// TestGoldens reads what Kafka's own classes wrote, writes it again and prints
// it: both must come out as Kafka has them, to the byte.
func TestGoldens(t *testing.T) {
	seen := map[string]int{}
	for _, g := range goldens(t) {
		record := g.decode(t)
		if record.RecordName() != g.name || record.APIKey() != g.key {
			t.Errorf("%v: decoded as %s, type %d", g, record.RecordName(), record.APIKey())
		}
		if again := g.encode(record); !bytes.Equal(again, g.bytes) {
			t.Errorf("%v is written as\n%x and not as\n%x", g, again, g.bytes)
		}
		if printed := string(record.AppendJSON(nil, g.version)); printed != g.json {
			t.Errorf("%v is printed as\n%s and not as\n%s", g, printed, g.json)
		}
		seen[g.log+g.kind+g.name]++
	}
	if len(seen) != 77 {
		t.Errorf("the goldens cover %d records, not the 77 of 4.4.0", len(seen))
	}
}

// TestGoldensCoverEveryVersion asks that no record or version of the
// definitions is without a golden.
func TestGoldensCoverEveryVersion(t *testing.T) {
	type one struct {
		kind, log    string
		key, version int16
	}
	have := map[one]bool{}
	for _, g := range goldens(t) {
		have[one{g.kind, g.log, g.key, g.version}] = true
	}
	count := 0
	check := func(kind, log string, key int16, record Record) {
		lowest, highest := record.Versions()
		for version := lowest; version <= highest; version++ {
			if count++; !have[one{kind, log, key, version}] {
				t.Errorf("%s version %d has no golden", record.RecordName(), version)
			}
		}
	}
	for key := int16(0); key < 100; key++ {
		if record := NewMetadataRecord(key); record != nil {
			check("metadata", "metadata", key, record)
		}
		for _, log := range []Log{GroupLog, TransactionLog, ShareLog} {
			if record := log.NewKey(key); record != nil {
				check("key", log.String(), key, record)
			}
			if record := log.NewValue(key); record != nil {
				check("value", log.String(), key, record)
			}
		}
	}
	if count != len(have) {
		t.Errorf("%d versions are defined and %d have goldens", count, len(have))
	}
}

// TestDefaults compares the New functions with what Kafka's default variants
// decode to where both say the same: fields that are absent on the wire.
func TestDefaults(t *testing.T) {
	change := NewPartitionChangeRecord()
	if change.Leader != -2 || change.LeaderRecoveryState != -1 || change.PartitionID != -1 {
		t.Errorf("an unchanged partition changes: %+v", change)
	}
	if !NewRegisterBrokerRecord().Fenced {
		t.Error("a new broker is not fenced")
	}
	if NewProducerIdsRecord().BrokerEpoch != -1 {
		t.Error("the broker epoch of a producer id block is not -1 at first")
	}
}

func TestEveryRecordStartsOver(t *testing.T) {
	for _, g := range goldens(t) {
		if g.kind != "metadata" || g.variant != "full" {
			continue
		}
		record := g.decode(t)
		fresh := NewMetadataRecord(g.key)
		blank := fresh.AppendTo(nil, g.version)
		if err := record.ReadFrom(blank, g.version); err != nil {
			t.Fatalf("%v: %v", g, err)
		}
		if again := record.AppendTo(nil, g.version); !bytes.Equal(again, blank) {
			t.Errorf("%v keeps something of what it held before: %x, not %x", g, again, blank)
		}
		if err := fresh.ReadFrom(blank, g.version); err != nil || !reflect.DeepEqual(record, fresh) {
			t.Errorf("%v: reading over an old record gives %+v, over a new one %+v", g, record, fresh)
		}
	}
}

func TestJSONAsDumpLogSegments(t *testing.T) {
	record := NewTopicRecord()
	record.Name = "orders"
	want := `{"type":"TOPIC_RECORD","version":0,"data":{"name":"orders","topicId":"AAAAAAAAAAAAAAAAAAAAAA"}}`
	if got := JSON(record, 0); got != want {
		t.Errorf("printed %s, not %s", got, want)
	}
	key, value := NewGroupMetadataKey(), NewTransactionLogValue()
	key.Group = "readers"
	if got, want := KeyJSON(key), `{"type":"2","data":{"group":"readers"}}`; got != want {
		t.Errorf("printed %s, not %s", got, want)
	}
	if got, want := ValueJSON(value, 1), `{"version":"1","data":{"producerId":0,"producerEpoch":0,`; !strings.HasPrefix(got, want) {
		t.Errorf("printed %s, not %s…", got, want)
	}
	for record, want := range map[Record]string{
		NewClearElrRecord():                    "CLEAR_ELR_RECORD",
		NewNoOpRecord():                        "NO_OP_RECORD",
		NewZkMigrationStateRecord():            "ZK_MIGRATION_STATE_RECORD",
		NewRemoveUserScramCredentialRecord():   "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
		NewBrokerRegistrationChangeRecord():    "BROKER_REGISTRATION_CHANGE_RECORD",
		NewRemoveAccessControlEntryRecord():    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD",
		NewUnregisterControllerRecord():        "UNREGISTER_CONTROLLER_RECORD",
		NewConsumerGroupRegularExpressionKey(): "CONSUMER_GROUP_REGULAR_EXPRESSION_KEY",
	} {
		if got := TypeName(record); got != want {
			t.Errorf("the type's name is %s, not %s", got, want)
		}
	}
}
