package scenario

import "ottla/compat/suite"

func codecs() []Scenario {
	var list []Scenario
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		list = append(list, Scenario{
			Name: "codec-" + codec, What: "batches of the codec are stored as they were sent and read back",
			Run: func(t *T) { storedCodec(t, codec) },
		})
	}
	for _, target := range []string{"uncompressed", "gzip", "snappy", "lz4", "zstd"} {
		list = append(list, Scenario{
			Name: "convert-to-" + target, What: "compression.type of the topic rules what is stored",
			Run: func(t *T) { convertedCodec(t, target) },
		})
	}
	return list
}

func storedCodec(t *T, codec string) {
	topic := t.Topic("", 1)
	sent := suite.Values("codec", 200, 500)
	t.Produce(suite.ProduceOptions{Topic: topic, Codec: codec, LingerMs: 50}, sent)
	batches := checkCodec(t, topic, codec)
	if batches >= len(sent) {
		t.Fatalf("%d records lie in %d batches: they were not batched", len(sent), batches)
	}
	t.ReadBack(topic, sent)
}

func convertedCodec(t *T, target string) {
	topic := t.Topic("", 1, "compression.type="+target)
	codec := "gzip"
	if target == "gzip" {
		codec = "snappy"
	}
	sent := suite.Values("convert", 200, 500)
	t.Produce(suite.ProduceOptions{Topic: topic, Codec: codec, LingerMs: 50}, sent)
	if target == "uncompressed" {
		target = "none"
	}
	checkCodec(t, topic, target)
	t.ReadBack(topic, sent)
}

// checkCodec checks the codec of every stored batch and returns how many there are.
func checkCodec(t *T, topic, want string) int {
	t.Helper()
	batches := t.Stored(topic)
	for _, b := range batches {
		if b.Codec != want {
			t.Fatalf("the batch at offset %d is stored as %s, want %s", b.BaseOffset, b.Codec, want)
		}
	}
	return len(batches)
}
