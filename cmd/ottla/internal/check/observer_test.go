package check

import (
	"bytes"
	"strings"
	"testing"

	"ottla/storage/logdir"
	"ottla/storage/segment"
)

// TestMetadataThatIsFetched: who follows the metadata and does not vote does not flush it, and takes off what a power cut left of it. That is
// no fault of its directories. Of those who vote, and after a clean stop, it is one.
func TestMetadataThatIsFetched(t *testing.T) {
	log := metaHome + "00000000000000000000.log"
	states := map[string]func(f tree){
		"holes":   func(f tree) { clear(f[log][9000:9400]) },
		"flipped": func(f tree) { f[log][9000] ^= 4 },
		"roll": func(f tree) {
			whole := f[log]
			b, at := batchAt(t, whole, 100)
			f[metaHome+segment.FileName(b.BaseOffset(), segment.LogSuffix)] = bytes.Clone(whole[at:])
			f[log] = whole[:at-10]
		},
		"segment": func(f tree) {
			whole := f[log]
			b, at := batchAt(t, whole, 100)
			_, before := batchAt(t, whole, 99)
			f[metaHome+segment.FileName(b.BaseOffset(), segment.LogSuffix)] = bytes.Clone(whole[at:])
			f[log] = whole[:before]
		},
	}
	for name, change := range states {
		for _, one := range []struct {
			who           string
			votes, closed bool
		}{{"observer", false, false}, {"voter", true, false}, {"observer, closed", false, true}} {
			t.Run(name+" of an "+one.who, func(t *testing.T) {
				f := golden(t)
				if !one.votes {
					replace(metaHome+"quorum-state", `"leaderId":1`, `"leaderId":3000`)(t, f)
				}
				if !one.closed {
					for _, dir := range goldenDirs {
						delete(f, dir+"/"+logdir.CleanShutdownFile)
					}
				}
				change(f)
				report := f.check(t, goldenDirs...)
				fault := strings.Contains(describe(report), "FAULT")
				if wanted := one.votes || one.closed; fault != wanted {
					t.Errorf("a fault: %t, want %t\n%s", fault, wanted, describe(report))
				}
			})
		}
	}
}
