package segment

import (
	"cmp"
	"slices"

	"ottla/protocol"
	"ottla/storage/vfs"
)

// Listed is a segment as a directory shows it.
type Listed struct {
	Base protocol.Offset
	Present
}

// List finds the segments in what a directory holds, by base offset, and the index files that belong to none.
func List(entries []vfs.Entry) (segments []Listed, orphans []string) {
	for _, e := range entries {
		if base, suffix, ok := ParseName(e.Name); ok && !e.Dir && suffix == LogSuffix {
			segments = append(segments, Listed{base, Present{
				Log: e.Size, Index: -1, TimeIndex: -1, TxnIndex: -1, ModifiedMs: e.Modified.UnixMilli(),
			}})
		}
	}
	slices.SortFunc(segments, func(a, b Listed) int { return cmp.Compare(a.Base, b.Base) })
	for _, e := range entries {
		base, suffix, ok := ParseName(e.Name)
		if !ok || e.Dir || suffix != IndexSuffix && suffix != TimeIndexSuffix && suffix != TxnIndexSuffix {
			continue
		}
		i, found := slices.BinarySearchFunc(segments, base, func(s Listed, base protocol.Offset) int { return cmp.Compare(s.Base, base) })
		switch {
		case !found:
			orphans = append(orphans, e.Name)
		case suffix == IndexSuffix:
			segments[i].Index = e.Size
		case suffix == TimeIndexSuffix:
			segments[i].TimeIndex = e.Size
		default:
			segments[i].TxnIndex = e.Size
		}
	}
	return segments, orphans
}
