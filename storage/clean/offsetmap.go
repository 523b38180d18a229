package clean

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"

	"ottla/protocol"
)

// entryBytes is what a key takes in an offsetMap: as much as in Apache Kafka's (SkimpyOffsetMap), so that
// log.cleaner.dedupe.buffer.size holds as many keys.
const entryBytes = 24

// offsetMap maps keys to their latest offsets. It keeps sixteen bytes of a hash instead of the key. Apache Kafka takes MD5,
// of which anybody can make two keys with the same hash, one of which is then lost.
type offsetMap struct {
	slots  []slot
	most   int // keys it takes
	count  int
	latest protocol.Offset // up to here all records are in it; NoOffset: none yet
}

type slot struct {
	hash, rest uint64
	after      int64 // offset + 1; 0 is an empty slot
}

// newOffsetMap makes a map for a stretch of so many offsets in at most bufferBytes, of which loadFactor may be used.
func newOffsetMap(bufferBytes int64, loadFactor float64, offsets int64) *offsetMap {
	budget := max(bufferBytes/entryBytes, 2)
	most := max(int64(float64(budget)*loadFactor), 1)
	slots := budget
	if offsets < most { // a short stretch needs no more
		slots = min(budget, int64(float64(offsets)/min(loadFactor, 0.9))+2)
	}
	return &offsetMap{slots: make([]slot, slots), most: int(most), latest: protocol.NoOffset}
}

func (m *offsetMap) find(key []byte) (at int, hash, rest uint64) {
	sum := sha256.Sum256(key)
	hash, rest = binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])
	high, _ := bits.Mul64(hash, uint64(len(m.slots)))
	for at = int(high); ; at++ {
		if at == len(m.slots) {
			at = 0
		}
		if s := &m.slots[at]; s.after == 0 || s.hash == hash && s.rest == rest {
			return at, hash, rest
		}
	}
}

// put notes the latest offset of a key. It refuses when the map is full, whether the key is in it or not, as Apache Kafka does.
func (m *offsetMap) put(key []byte, offset protocol.Offset) bool {
	if m.count >= m.most || m.count >= len(m.slots)-1 {
		return false
	}
	at, hash, rest := m.find(key)
	if m.slots[at].after == 0 {
		m.count++
	}
	m.slots[at] = slot{hash, rest, int64(offset) + 1}
	m.latest = offset
	return true
}

// get gives the latest offset of a key, or NoOffset.
func (m *offsetMap) get(key []byte) protocol.Offset {
	at, _, _ := m.find(key)
	return protocol.Offset(m.slots[at].after - 1)
}

// utilization is how much of the buffer that was allowed is in use, 0 to 1.
func (m *offsetMap) utilization(bufferBytes int64) float64 {
	return float64(m.count) / float64(max(bufferBytes/entryBytes, 2))
}
