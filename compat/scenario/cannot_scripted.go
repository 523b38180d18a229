package scenario

// The clients of compat/python and compat/node.

var cannotKafkaPython = map[string]string{
	"binary":                  "it refuses null header values",
	"resend":                  resendReason,
	"offsets-by-time: tiered": "it does not know the earliest offset that waits for upload",
}

var cannotAiokafka = map[string]string{
	"resend":                  resendReason,
	"compact-topic: name":     "it does not know the error INVALID_RECORD, and tells an unknown one",
	"offsets-by-time: max":    "it has no name for the special value",
	"offsets-by-time: tiered": "it has no names for the special values of tiered storage",
}

var cannotKafkaJS = map[string]string{
	"binary":                      "it fails on null header values",
	"resend":                      resendReason,
	"out-of-range: none":          alwaysResets,
	"delete-records: none":        alwaysResets,
	"offsets-by-time: max":        "it has no name for the special value",
	"offsets-by-time: tiered":     "it has no names for the special values of tiered storage",
	"offsets-by-time: timestamps": "it asks by time, tells no timestamp, and the end where there is no such record",
}

var cannotPlatformatic = map[string]string{
	"txn-views: committed": "it shows records of aborted transactions to readers of committed ones",
	"txn-fenced":           idZero,
	"txn-timeout":          idZero,
	"txn-copy":             idZero,
	"copy-sigkill":         idZero,

	"resend":                      resendReason,
	"convert-to-snappy":           "it cannot read the framed snappy that a broker writes",
	"out-of-range: reset":         neverResets,
	"group-seek: reset":           neverResets,
	"log-append-time: timestamps": "it tells the producer's time also where the topic has the broker's",
	"offsets-by-time: tiered":     "it has no names for the special values of tiered storage",
}

const (
	idZero       = "it begins with producer id 0 instead of none, so that no second producer of a transactional id is let in (PRODUCER_FENCED)"
	alwaysResets = "an offset out of range is always reset"
	neverResets  = "an offset out of range is always an error"
)
