package serve

import "ottla/compat/suite"

// Due are the positions that a member commits after it has read some more records, before which it had read so many: what the
// Commit of its options says. Nothing is due: nil.
func Due(o suite.MemberOptions, records []suite.Record, before int) map[int32]int64 {
	from, to := before, len(records)
	if o.Commit != 0 { // once, when so many were read
		from, to = 0, o.Commit
		if to < 0 || before >= to || len(records) < to {
			return nil
		}
	}
	var due map[int32]int64
	for _, r := range records[from:to] {
		if due == nil {
			due = map[int32]int64{}
		}
		due[r.Partition] = r.Offset + 1
	}
	return due
}
