package checkpoint

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"ottla/protocol"
	"ottla/storage/vfs"
)

// EpochStart says at which offset a leader epoch begins.
type EpochStart struct {
	Epoch protocol.LeaderEpoch
	Start protocol.Offset
}

// ErrDamaged says that a checkpoint file is damaged.
var ErrDamaged = errors.New("the checkpoint file is damaged")

// ReadOffsets reads an offset checkpoint of a log directory ("0\nN\ntopic partition offset" a line). A file
// that does not exist is an empty map; one that cannot be parsed is an error that wraps ErrDamaged.
func ReadOffsets(fsys vfs.FS, name string) (map[protocol.TopicPartition]protocol.Offset, error) {
	data, err := readIfThere(fsys, name)
	if err != nil || data == nil {
		return map[protocol.TopicPartition]protocol.Offset{}, err
	}
	offsets, err := ParseOffsets(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return offsets, nil
}

func readIfThere(fsys vfs.FS, name string) ([]byte, error) {
	data, err := vfs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read a checkpoint: %w", err)
	}
	if data == nil {
		data = []byte{}
	}
	return data, nil
}

// ParseOffsets reads the bytes of an offset checkpoint.
func ParseOffsets(data []byte) (map[protocol.TopicPartition]protocol.Offset, error) {
	offsets := map[protocol.TopicPartition]protocol.Offset{}
	err := parseLines(data, 3, func(words []string) error {
		partition, err := strconv.ParseInt(words[1], 10, 32)
		if err != nil || partition < 0 {
			return fmt.Errorf("%w: %q is no partition", ErrDamaged, words[1])
		}
		offset, err := strconv.ParseInt(words[2], 10, 64)
		if err != nil {
			return fmt.Errorf("%w: %q is no offset", ErrDamaged, words[2])
		}
		offsets[protocol.TopicPartition{Topic: words[0], Partition: int32(partition)}] = protocol.Offset(offset)
		return nil
	})
	return offsets, err
}

// parseLines reads "0\nN\n" and N lines of so many words each (CheckpointFile.java).
func parseLines(data []byte, words int, line func([]string) error) error {
	version, rest, _ := strings.Cut(string(data), "\n")
	if strings.TrimSpace(version) != "0" {
		return fmt.Errorf("%w: its version is %.20q", ErrDamaged, version)
	}
	number, rest, _ := strings.Cut(rest, "\n")
	want, err := strconv.ParseUint(strings.TrimSpace(number), 10, 31)
	if err != nil {
		return fmt.Errorf("%w: its number of lines is %.20q", ErrDamaged, number)
	}
	var got uint64
	for rest != "" {
		var text string
		text, rest, _ = strings.Cut(rest, "\n")
		if text == "" && rest == "" {
			break
		}
		fields := strings.Fields(text)
		if len(fields) != words {
			return fmt.Errorf("%w: the line %.50q", ErrDamaged, text)
		}
		if err := line(fields); err != nil {
			return err
		}
		got++
	}
	if got != want {
		return fmt.Errorf("%w: it has %d lines, not %d", ErrDamaged, got, want)
	}
	return nil
}

// FormatOffsets gives the bytes of an offset checkpoint; lines are sorted by topic and partition.
func FormatOffsets(offsets map[protocol.TopicPartition]protocol.Offset) []byte {
	partitions := make([]protocol.TopicPartition, 0, len(offsets))
	for tp := range offsets {
		partitions = append(partitions, tp)
	}
	slices.SortFunc(partitions, func(a, b protocol.TopicPartition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	var out bytes.Buffer
	fmt.Fprintf(&out, "0\n%d\n", len(partitions))
	for _, tp := range partitions {
		fmt.Fprintf(&out, "%s %d %d\n", tp.Topic, tp.Partition, offsets[tp])
	}
	return out.Bytes()
}

// WriteOffsets replaces an offset checkpoint durably.
func WriteOffsets(fsys vfs.FS, name string, offsets map[protocol.TopicPartition]protocol.Offset) error {
	return vfs.WriteFileAtomic(fsys, name, FormatOffsets(offsets))
}

// ParseEpochs reads the bytes of a leader-epoch-checkpoint. Epochs and offsets must rise.
func ParseEpochs(data []byte) ([]EpochStart, error) {
	var epochs []EpochStart
	err := parseLines(data, 2, func(words []string) error {
		epoch, err := strconv.ParseInt(words[0], 10, 32)
		start, err2 := strconv.ParseInt(words[1], 10, 64)
		if err != nil || err2 != nil || epoch < 0 || start < 0 {
			return fmt.Errorf("%w: %q is no epoch with its first offset", ErrDamaged, words)
		}
		e := EpochStart{protocol.LeaderEpoch(epoch), protocol.Offset(start)}
		if n := len(epochs); n > 0 && (e.Epoch <= epochs[n-1].Epoch || e.Start <= epochs[n-1].Start) {
			return fmt.Errorf("%w: epoch %d at %d comes after epoch %d at %d", ErrDamaged,
				e.Epoch, e.Start, epochs[n-1].Epoch, epochs[n-1].Start)
		}
		epochs = append(epochs, e)
		return nil
	})
	return epochs, err
}

// WriteEpochs replaces a leader-epoch-checkpoint durably.
func WriteEpochs(fsys vfs.FS, name string, epochs []EpochStart) error {
	out := fmt.Appendf(nil, "0\n%d\n", len(epochs))
	for _, e := range epochs {
		out = fmt.Appendf(out, "%d %d\n", e.Epoch, e.Start)
	}
	return vfs.WriteFileAtomic(fsys, name, out)
}
