package api

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/server"
)

// TestErrorCounts: each code of a reply counts, of each partition.
func TestErrorCounts(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{partitions: 2})
	p := f.connect()
	req := produceTo(f, 12, 1, "orders", batchOf("a"), batchOf("b"), batchOf("c")) // there is no third partition
	addProduce(f, req, 12, "nowhere", batchOf("d"))
	_ = request[*kmsg.ProduceResponse](p, req, 12)
	fetch := fetchFrom(12, "orders", 0)
	addFetch(fetch, 12, "orders", 77)
	fetch.Topics[1].Partitions[0].Partition = 1
	_ = request[*kmsg.FetchResponse](p, fetch, 12)
	var got []string
	f.server.EachRequest(func(key protocol.APIKey, _ bool, stats *server.RequestStats) {
		stats.EachError(func(code protocol.ErrorCode, count int64) { got = append(got, fmt.Sprint(key, " ", code, " ", count)) })
	})
	want := []string{"Produce NONE 2", "Produce UNKNOWN_TOPIC_OR_PARTITION 2", "Fetch NONE 2", "Fetch OFFSET_OUT_OF_RANGE 1"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestEveryResponseHasErrorCodes: none of the messages served keeps them elsewhere.
func TestEveryResponseHasErrorCodes(t *testing.T) {
	for _, row := range Registry() {
		kind := reflect.TypeOf(kmsg.RequestForKey(int16(row.Key)).ResponseKind()).Elem()
		if p := findPlaces(kind); p.code < 0 && len(p.within) == 0 {
			t.Errorf("%s has none", kind)
		}
	}
}
