module ottla/compat/kafkago

go 1.26.0

require (
	github.com/segmentio/kafka-go v0.4.51
	ottla v0.0.0
)

require (
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/pierrec/lz4/v4 v4.1.33 // indirect
	github.com/twmb/franz-go v1.22.3 // indirect
)

replace ottla => ../..
