// The libraries whose own tests are run, and what these need. This module holds no code.
module ottla/compat/suites/modules

go 1.26.0

require (
	github.com/segmentio/kafka-go v0.4.51
	github.com/twmb/franz-go v1.22.3
)
