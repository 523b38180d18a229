package metadata

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"ottla/protocol"
	"ottla/protocol/schema"
)

// TestFeatureTable prints our tables as FeatureTable.java prints Kafka's.
func TestFeatureTable(t *testing.T) {
	want, err := os.ReadFile("testdata/features-4.4.0/table.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for v := OldestMetadataVersion; v.Known(); v++ {
		changed := v == OldestMetadataVersion || MetadataChangedBetween(v-1, v)
		fmt.Fprintf(&got, "metadata.version %d %s changed=%t broker=%d partition=%d change=%d fetch=%d offsets=%d bump=%t ",
			int16(v), v, changed, v.RecordVersion(schema.NewRegisterBrokerRecord()), v.RecordVersion(schema.NewPartitionRecord()),
			v.RecordVersion(schema.NewPartitionChangeRecord()), v.FetchVersion(), v.ListOffsetsVersion(), v.BumpsLeaderEpochOnISRShrink())
		fmt.Fprintf(&got, "scram=%t transactions=%t tokens=%t controllers=%t directories=%t elr=%t cordoned=%t cidr=%t unregister=%t",
			v.SupportsScram(), v.SupportsTransactions(), v.SupportsDelegationTokens(), v.SupportsControllerRegistration(),
			v.SupportsDirectories(), v.SupportsELR(), v.SupportsCordonedDirectories(), v.SupportsCIDRACLs(), v.SupportsControllerUnregistration())
		for _, feature := range AllFeatures() {
			fmt.Fprintf(&got, " %s=%d", feature.Name, feature.Default(v))
		}
		got.WriteByte('\n')
	}
	for _, feature := range AllFeatures() {
		for level, info := range feature.Levels {
			fmt.Fprintf(&got, "%s %d bootstrap=%d needs=%d\n", feature.Name, level, int16(info.Bootstrap), int16(info.MinMetadataVersion))
		}
	}
	if got.String() != string(want) {
		t.Errorf("the tables are\n%s\nand not\n%s", got.String(), want)
	}
}

func TestParseMetadataVersion(t *testing.T) {
	for name, want := range map[string]MetadataVersion{
		"4.4-IV2": 33, "4.4": 33, "4.4.0": 33, "3.9": 21, "3.9-IV0": 21, "3.9.1": 21, "4.0": 25, "4.0-IV1": 23, "3.3-IV3": 7,
	} {
		if got, err := ParseMetadataVersion(name); err != nil || got != want {
			t.Errorf("%q is %v, %v and not %v", name, got, err, want)
		}
	}
	for _, name := range []string{"", "4", "4.5", "4.4-IV3", "3.2", "33", "4.40"} {
		if got, err := ParseMetadataVersion(name); err == nil {
			t.Errorf("%q is %v", name, got)
		}
	}
}

func TestBrokerRegistrationChangeVersion(t *testing.T) {
	change := schema.NewBrokerRegistrationChangeRecord()
	for version, set := range []func(){
		func() { change.Fenced = 1 },
		func() { change.InControlledShutdown = 1 },
		func() { change.LogDirs = []protocol.DirectoryID{{1}} },
		func() { change.CordonedLogDirs = []protocol.DirectoryID{} },
	} {
		set()
		if got := MaxMetadataVersion.RecordVersion(change); got != int16(version) {
			t.Errorf("%+v is written in version %d", change, got)
		}
	}
}

func TestValidateFeatures(t *testing.T) {
	for _, c := range []struct {
		levels map[string]int16
		text   string
	}{
		{map[string]int16{MetadataVersionFeature: 33, GroupVersionFeature: 1, ShareVersionFeature: 2}, ""},
		{map[string]int16{MetadataVersionFeature: 23, ELRVersionFeature: 1}, ""},
		{map[string]int16{MetadataVersionFeature: 21, TransactionVersionFeature: 2, GroupVersionFeature: 1}, ""},
		{map[string]int16{MetadataVersionFeature: 22, ELRVersionFeature: 1}, "eligible.leader.replicas.version level 1 needs metadata.version 4.0-IV1"},
		{map[string]int16{MetadataVersionFeature: 33, ShareVersionFeature: 3}, "share.version has no level 3"},
		{map[string]int16{MetadataVersionFeature: 34}, "no level 34"},
		{map[string]int16{MetadataVersionFeature: 33, "other.version": 1}, `no feature "other.version"`},
	} {
		err := ValidateFeatures(c.levels)
		if c.text == "" && err != nil || c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%v gives %v, not %q", c.levels, err, c.text)
		}
	}
}
