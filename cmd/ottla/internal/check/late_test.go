package check

import "testing"

// TestEpochsLate: leader epochs that begin behind the log's start are no fault: a server that is killed after records were deleted has
// noted that in one file and not yet in the other.
func TestEpochsLate(t *testing.T) {
	files := golden(t)
	name := home(files, "txns-0") + "/txns-0/leader-epoch-checkpoint"
	files[name] = []byte("0\n2\n0 4\n2 29\n")
	report := files.check(t, goldenDirs...)
	for _, fault := range report.Faults {
		t.Errorf("a fault: %+v", fault)
	}
	noted := false
	for _, note := range report.Notes {
		noted = noted || note.Name == EpochsLate && note.Partition == "txns-0"
	}
	if !noted {
		t.Errorf("it is not noted: %+v", report.Notes)
	}
}
