package checkpoint

import (
	"errors"
	"testing"

	"ottla/protocol"
	"ottla/storage/vfs"
)

func TestCheckpointFiles(t *testing.T) {
	disk := vfs.NewMem(func() uint64 { return 1 })
	offsets := map[protocol.TopicPartition]protocol.Offset{{Topic: "b", Partition: 10}: 5, {Topic: "b", Partition: 9}: 6, {Topic: "a-b", Partition: 0}: 1 << 40}
	if err := WriteOffsets(disk, "c", offsets); err != nil {
		t.Fatal(err)
	}
	data, err := vfs.ReadFile(disk, "c")
	if err != nil {
		t.Fatal(err)
	}
	if want := "0\n3\na-b 0 1099511627776\nb 9 6\nb 10 5\n"; string(data) != want {
		t.Errorf("%q", data)
	}
	got, err := ReadOffsets(disk, "c")
	if err != nil || len(got) != 3 || got[protocol.TopicPartition{Topic: "b", Partition: 10}] != 5 {
		t.Errorf("%v %v", got, err)
	}
	if got, err := ReadOffsets(disk, "none"); err != nil || len(got) != 0 {
		t.Errorf("%v %v", got, err)
	}
	for _, bad := range []string{"", "1\n0\n", "0\n", "0\n2\na 0 1\n", "0\n1\na 0\n", "0\n1\na x 1\n", "0\n1\na 0 x\n", "0\n-1\n", "0\n0\na 0 1\n", "0\n1\na -1 1\n"} {
		if got, err := ParseOffsets([]byte(bad)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v %v", bad, got, err)
		}
	}
	for _, bad := range []string{"0\n2\n1 5\n1 6\n", "0\n2\n1 5\n2 5\n", "0\n1\n-1 5\n", "0\n1\n1 -5\n"} {
		if got, err := ParseEpochs([]byte(bad)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v %v", bad, got, err)
		}
	}
}

func FuzzParseCheckpoint(f *testing.F) {
	f.Add([]byte("0\n1\na 0 1\n"))
	f.Add([]byte("0\n2\n1 5\n2 6\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if offsets, err := ParseOffsets(data); err == nil {
			if again, err := ParseOffsets(FormatOffsets(offsets)); err != nil || len(again) != len(offsets) {
				t.Errorf("%v, written and read: %v, %v", offsets, again, err)
			}
		}
		if epochs, err := ParseEpochs(data); err == nil {
			for i, e := range epochs {
				if _, end := EpochEnd(epochs, e.Epoch, 1<<62); i+1 < len(epochs) && end != epochs[i+1].Start {
					t.Errorf("%v: epoch %d ends at %d", epochs, e.Epoch, end)
				}
			}
		}
		_, _ = ParseTopicID(data)
	})
}
