package harness

import (
	"os"
	"path/filepath"
)

// ApplicationsClassPath is KafkaClassPath with Kafka Streams, the file connectors, spring-kafka and the suite's programs made of them.
func ApplicationsClassPath() string {
	list := string(os.PathListSeparator)
	return KafkaClassPath() + list + filepath.Join(Cache(), "applications", "*") + list + filepath.Join(Cache(), "programs")
}
