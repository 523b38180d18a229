package offline

import (
	"slices"
	"strings"
	"testing"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/protocol/schema"
	"ottla/storage/logdir"
	"ottla/storage/vfs"
)

// TestLookAtGroups: groups of kinds that are not served are found in any codec and segment; those with a tombstone are not there, and
// what is damaged or unknown does not end the search.
func TestLookAtGroups(t *testing.T) {
	m := vfs.NewMem(nil)
	share := func(name string) []byte { return schema.AppendKey(nil, &schema.ShareGroupMetadataKey{GroupID: name}) }
	streams := func(name string) []byte { return schema.AppendKey(nil, &schema.StreamsGroupMetadataKey{GroupID: name}) }
	batch := func(codec compress.Codec, keysAndValues ...[]byte) string {
		o := record.PlainOptions()
		o.Codec = codec
		b := record.NewBuilder(o)
		for i := 0; i < len(keysAndValues); i += 2 {
			b.Append(1, keysAndValues[i], keysAndValues[i+1], nil)
		}
		return string(b.Build(compress.NewPool()))
	}
	there, unknown := []byte("\x00\x00value"), []byte("\x7f\x01what")
	classic := schema.AppendKey(nil, &schema.GroupMetadataKey{Group: "classic"})
	put(t, m, "/d/__consumer_offsets-0/00000000000000000000.log",
		batch(compress.Zstd, share("s-gone"), there, streams("t1"), there, nil, nil, unknown, there, classic, there)+batch(compress.None, share("s1"), there))
	put(t, m, "/d/__consumer_offsets-0/00000000000000000006.log", batch(compress.None, share("s-gone"), nil, streams("t2"), there)+"torn")
	put(t, m, "/d/__consumer_offsets-0/00000000000000000006.log.deleted", batch(compress.None, share("s-deleted"), there))
	put(t, m, "/d/__consumer_offsets-7/00000000000000000000.log", "\x00\x00"+batch(compress.None, share("behind damage"), there))
	put(t, m, "/d/orders-0/00000000000000000000.log", batch(compress.None, share("no coordinator's"), there))
	put(t, m, "/e/__consumer_offsets-1/00000000000000000000.log", batch(compress.Gzip, share("s2"), there))
	var looked []Looked
	for _, dir := range []string{"/d", "/e"} {
		l := Looked{Path: dir}
		entries, err := m.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			l.count(entry.Name)
		}
		looked = append(looked, l)
	}
	found, err := LookAtGroups(m, looked)
	if err != nil || !slices.Equal(found.Share, []string{"s1", "s2"}) || !slices.Equal(found.Streams, []string{"t1", "t2"}) {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestRefuseTiered: one topic whose segments are moved to remote storage is enough.
func TestRefuseTiered(t *testing.T) {
	image := func(values map[string]string) *metadata.Image {
		d := metadata.NewDelta(metadata.Empty())
		for topic, value := range values {
			const key = "remote.storage.enable"
			if err := d.Replay(0, 0, &schema.ConfigRecord{ResourceType: metadata.TopicConfig, ResourceName: topic, Name: key, Value: &value}); err != nil {
				t.Fatal(err)
			}
		}
		return d.Build(metadata.Provenance{})
	}
	if err := RefuseTiered(image(map[string]string{"a": "false"})); err != nil {
		t.Error(err)
	}
	err := RefuseTiered(image(map[string]string{"b": "true", "a": "false", "c": " TRUE"}))
	if err == nil || !strings.Contains(err.Error(), "2 topics have segments in remote storage") || !strings.HasSuffix(err.Error(), ": b, c") {
		t.Error(err)
	}
}

// TestElsewhere: replicas on other brokers are no matter for a node that is a broker alone, a directory that was not named is.
func TestElsewhere(t *testing.T) {
	topic, dir, both := protocol.TopicID{15: 200}, protocol.DirectoryID{15: 201}, []protocol.NodeID{1, 2}
	d := metadata.NewDelta(metadata.Empty())
	for _, r := range []schema.MetadataRecord{
		&schema.TopicRecord{Name: "orders", TopicID: topic},
		&schema.PartitionRecord{TopicID: topic, Replicas: both, ISR: both, Leader: 2, Directories: []protocol.UUID{dir, {15: 202}}},
	} {
		if err := d.Replay(0, 0, r); err != nil {
			t.Fatal(err)
		}
	}
	image := d.Build(metadata.Provenance{})
	here := []Looked{{Meta: logdir.MetaProperties{DirectoryID: dir}}}
	for _, c := range []struct {
		observes bool
		dirs     []Looked
		want     string
	}{
		{false, here, "1 partition has replicas on other brokers"},
		{true, here, ""},
		{true, nil, "1 partition lies in a log directory that was not named"},
	} {
		found := Examined{NodeID: 1, Observes: c.observes, Directories: c.dirs, Image: image}
		if got := strings.Join(found.elsewhere(), "; "); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("observes %v, %d directories: %q, want %q", c.observes, len(c.dirs), got, c.want)
		}
	}
}
