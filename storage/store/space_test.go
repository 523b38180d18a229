package store

import (
	"testing"

	"ottla/protocol"
	"ottla/storage/space"
)

// TestFullDirectoriesAreNotChosen: a new partition goes where there is room, however many are there; a move to where there
// is none is refused; and a partition that was told where to go goes there.
func TestFullDirectoriesAreNotChosen(t *testing.T) {
	m := formatted(t, "a", "b")
	left := map[string]*space.Directory{}
	for _, dir := range []string{"a", "b"} {
		left[dir] = space.New(dir, space.Settings{Free: 400, Reserve: 100})
	}
	look := func(dir string, usable int64) { left[dir].Looked(left[dir].Begin(), 10_000, usable) }
	o := options(m, "a", "b")
	o.Space = func(dir string) *space.Directory { return left[dir] }
	s := open(t, o)
	where := func(p protocol.TopicPartition, want int) {
		t.Helper()
		if id, _ := s.DirectoryOf(p); id != directoryID(want) {
			t.Errorf("%s is in %s", p, id)
		}
	}
	look("a", 1000)
	look("b", 300)
	for n := range int32(3) {
		create(t, s, tp("t", n))
		where(tp("t", n), 0)
	}
	if err := s.CreateFuture(tp("t", 0), directoryID(1)); err == nil {
		t.Error("a partition moves to a directory without room")
	}
	if _, err := s.Create(tp("u", 0), topicID("u"), directoryID(1)); err != nil {
		t.Error(err)
	}
	where(tp("u", 0), 1)
	look("a", 50)
	create(t, s, tp("v", 0))
	where(tp("v", 0), 1)
	look("a", 300) // both are short of room: the one with fewer partitions
	create(t, s, tp("v", 1))
	where(tp("v", 1), 1)
	look("b", 600)
	must(t, s.CreateFuture(tp("t", 0), directoryID(1)))
}
