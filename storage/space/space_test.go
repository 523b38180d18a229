package space

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

func TestMarks(t *testing.T) {
	derived := Settings{Free: -1, Reserve: -1}
	for _, test := range []struct {
		total    int64
		settings Settings
		want     limits
	}{
		{64 * mib, derived, limits{64 * mib / 20, 64 * mib / 80}},
		{10 * gib, derived, limits{gib / 2, 64 * mib}},
		{4096 * gib, derived, limits{gib, 64 * mib}},
		{4096 * gib, Settings{Free: 0, Reserve: -1}, limits{0, 0}},
		{gib, Settings{Free: 100 * mib, Reserve: -1}, limits{100 * mib, 25 * mib}},
		{gib, Settings{Free: 100 * mib, Reserve: 0}, limits{100 * mib, 0}},
		{gib, Settings{Free: 100 * mib, Reserve: 200 * mib}, limits{100 * mib, 100 * mib}},
		{gib, Settings{Free: 0, Reserve: 5 * mib}, limits{0, 5 * mib}},
		{0, derived, limits{0, 0}},
	} {
		if got := limitsFor(test.total, test.settings); got != test.want {
			t.Errorf("%d, %+v: %+v, not %+v", test.total, test.settings, got, test.want)
		}
	}
}

// TestStates goes down and up, and finds the hysteresis.
func TestStates(t *testing.T) {
	l := limits{clients: 400, internal: 100}
	state := Roomy
	for _, step := range []struct {
		usable int64
		want   State
	}{
		{1000, Roomy},
		{400, Roomy},
		{399, Low},
		{400, Low},
		{499, Low},
		{500, Roomy},
		{399, Low},
		{100, Low},
		{99, Critical},
		{124, Critical},
		{125, Low},
		{499, Low},
		{0, Critical},
		{450, Low},
		{0, Critical},
		{500, Roomy},
	} {
		if state = l.next(state, step.usable); state != step.want {
			t.Errorf("with %d left it is %v, not %v", step.usable, state, step.want)
		}
	}
	if off := (limits{}); off.next(Roomy, 0) != Roomy || off.next(Critical, 0) != Roomy {
		t.Error("without marks something is refused")
	}
}

func lookAt(d *Directory, total, usable int64) (before, after State) {
	return d.Looked(d.Begin(), total, usable)
}

func TestNobodyIsRefusedBeforeTheFirstLook(t *testing.T) {
	var none *Directory
	for _, d := range []*Directory{none, New("d", Settings{Free: -1, Reserve: -1})} {
		if d.Admit(Client, gib) != nil || d.Refusal(Internal) != nil || d.State() != Roomy || d.Affords(gib) != nil {
			t.Error("refused")
		}
	}
}

// TestBetweenLooks: what is written after a look counts, so the mark holds however fast it goes.
func TestBetweenLooks(t *testing.T) {
	d := New("data", Settings{Free: 400, Reserve: 100})
	woken := 0
	d.Wake = func() { woken++ }
	lookAt(d, 10_000, 1000)
	admitted := int64(0)
	for d.Admit(Client, 7) == nil {
		admitted += 7
	}
	if admitted > 600 || admitted < 600-7 {
		t.Errorf("%d bytes were admitted, 600 were to be had", admitted)
	}
	if d.State() != Low || woken != 1 {
		t.Errorf("it is %v, and a look was asked for %d times", d.State(), woken)
	}
	if d.Admit(Client, 1) == nil {
		t.Error("a smaller batch passed the one that was refused")
	}
	for internal := int64(0); ; internal += 7 {
		refused := d.Admit(Internal, 7)
		if refused == nil {
			continue
		}
		if all := admitted + internal; all > 900 || all < 900-7 || d.State() != Critical {
			t.Errorf("coordinators got %d bytes of the reserve, and it is %v", internal, d.State())
		}
		if !errors.Is(refused, syscall.ENOSPC) || !strings.Contains(refused.Error(), "data") || refused.Mark < 100 {
			t.Errorf("%v", refused)
		}
		break
	}
	if before, after := lookAt(d, 10_000, 450); before != Critical || after != Low || d.Admit(Internal, 7) != nil || d.Admit(Client, 7) == nil {
		t.Errorf("from %v to %v", before, after)
	}
	if _, after := lookAt(d, 10_000, 500); after != Roomy || d.Admit(Client, 7) != nil {
		t.Errorf("room came back, and it is %v", after)
	}
}

// TestWritesDuringALook count twice rather than not at all.
func TestWritesDuringALook(t *testing.T) {
	d := New("d", Settings{Free: 400})
	lookAt(d, 10_000, 5000)
	begun := d.Begin()
	d.Admit(Client, 100)
	d.Looked(begun, 10_000, 550) // the 100 may be in it or not
	if d.Admit(Client, 51) == nil {
		t.Error("what was written while the file system was asked is forgotten")
	}
}

func TestAffords(t *testing.T) {
	d := New("d", Settings{Free: 400, Reserve: 100})
	lookAt(d, 10_000, 1000)
	d.Admit(Client, 100)
	if d.Affords(800) != nil || d.Affords(801) == nil {
		t.Error("background work may have what the reserve leaves")
	}
	lookAt(d, 10_000, 300) // clients are refused, and compaction makes room
	if refused := d.Affords(201); d.Affords(200) != nil || refused == nil || refused.Usable != 300 || refused.Mark != 301 {
		t.Errorf("below the clients' mark: %v", refused)
	}
	d.Set(Settings{})
	if _, after := lookAt(d, 10_000, 300); after != Roomy || d.Affords(3000) != nil {
		t.Errorf("without marks it is %v", after)
	}
}
