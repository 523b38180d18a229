package api

import (
	"errors"
	"strings"
	"testing"

	"ottla/protocol"
)

// A producer is told what is the matter with a disk, from the version on that has a place for it.
func TestProduceToAFailedDisk(t *testing.T) {
	versions(t, protocol.Produce, func(t *testing.T, version int16) {
		f := newFixture(t)
		f.topic("orders", topicSpec{})
		p := f.connect()
		f.store.FailDirectory(f.store.Directories()[0].ID, errors.New("disk on fire"))
		f.replicas.DirectoryFailed(f.store.Directories()[0].ID)
		got := produceOne(f, p, version, -1, "orders", batchOf("a"))
		expectCode(t, "a failed disk", got.ErrorCode, protocol.KafkaStorageError)
		if told := got.ErrorMessage != nil && strings.Contains(*got.ErrorMessage, "offline"); told != (version >= 8) {
			t.Errorf("the sentence is %v", got.ErrorMessage)
		}
	})
}
