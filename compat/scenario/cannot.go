package scenario

import (
	"slices"
	"strings"
)

// cannot tells, by client and row, why a client cannot express it. A key "row: part" excepts a part of the row, of which the
// scenario asks by t.Can. The lists of further clients stand in files of their own, cannot_*.go.
var cannot = map[string]map[string]string{
	Franz:     {},
	Java:      {"resend": resendReason},
	Confluent: old(cannotConfluent),
	Kcat:      old(cannotKcat),
	Console:   old(cannotConsole),
	Sarama:    old(cannotSarama),
	KafkaGo:   old(cannotKafkaGo),
	Rdkafka:   old(cannotRdkafka),

	KafkaPython:  old(cannotKafkaPython),
	Aiokafka:     old(cannotAiokafka),
	KafkaJS:      old(cannotKafkaJS),
	Platformatic: old(cannotPlatformatic),
}

const (
	oneRowAtATime = "the tools run one after the other and only stop after a number of records"
	resendReason  = "the library gives no way to send the same batch twice"
)

const (
	noTransactions = "no transactions"
	oneAProcess    = "one process for each transaction, in one partition"
)

// old adds the rows with transaction.version=1 for clients to which it makes no difference.
func old(list map[string]string) map[string]string {
	for _, row := range []string{"txn-views", "txn-fenced", "txn-timeout", "txn-copy"} {
		reason, ok := list[row]
		if !ok {
			reason = "it speaks transactions v1 to every server: the row without v1 shows it"
		}
		list[row+oldTransactions] = reason
	}
	return list
}

var cannotConfluent = map[string]string{
	"resend":                  resendReason,
	"offsets-by-time: tiered": "the library has no names for the special values of tiered storage",
}

var cannotKcat = map[string]string{
	"txn-views: produce": oneAProcess,
	"txn-fenced":         oneAProcess,
	"txn-timeout":        oneAProcess,
	"txn-copy":           oneAProcess,
	"copy-sigkill":       oneAProcess,

	"binary":          "keys and values are separated by delimiters, and it has no null header values",
	"empty":           "an empty key or value is written as null",
	"create-time":     "it takes no timestamps",
	"future-time":     "it takes no timestamps",
	"resend":          resendReason,
	"delete-records":  "no administration",
	"topic-life":      "no administration",
	"partitions-500":  "no administration; one process for each partition written",
	"group-seek":      "a member reads from where the group has committed",
	"group-crash":     "it commits by itself, at times of its own",
	"group-admin":     "no administration",
	"group-500: fill": "one process for each partition written",

	"offsets-by-time: max":        "it has no name for the special value",
	"offsets-by-time: tiered":     "it has no names for the special values of tiered storage",
	"offsets-by-time: timestamps": "it asks by time, tells no timestamp, and the end where there is no such record",
}

var cannotSarama = map[string]string{
	"resend":                  resendReason,
	"offsets-by-time: max":    "it asks for offsets in version 6, which has no such special value",
	"offsets-by-time: tiered": "it asks for offsets in version 6, which has no such special values",
}

var cannotRdkafka = map[string]string{
	"resend":                      resendReason,
	"delete-records":              "the library has no DeleteRecords",
	"offsets-by-time: max":        "the library has no name for the special value",
	"offsets-by-time: tiered":     "the library has no names for the special values of tiered storage",
	"offsets-by-time: timestamps": "it asks by time and tells no timestamps",
}

var cannotKafkaGo = map[string]string{
	"txn-views":    "it gives markers to readers, and to those of committed records what was aborted",
	"txn-fenced":   noTransactions,
	"txn-timeout":  noTransactions,
	"txn-copy":     noTransactions,
	"copy-sigkill": noTransactions,

	"group-500: fill": "its writer, which sends the batch of each partition by itself, runs out of time now and then, with Apache Kafka as well",
	"idempotent":      "no idempotent producer",
	"resend":          resendReason,
	"delete-records":  "the library has no DeleteRecords",
	"group-seek":      "a reader in a group cannot be moved (Reader.SetOffset is refused)",
	"restart-sigterm": "no idempotent producer: what is sent again after a restart may be stored twice",
	"restart-sigkill": "no idempotent producer: what is sent again after a restart may be stored twice",

	"binary": "it reads an empty key or value as null",
	"empty":  "it reads an empty key or value as null",

	"read-committed: idempotent":  "no idempotent producer",
	"log-append-time: timestamps": "it adds each record's difference to the first timestamp of its batch, although the append time holds for all",
	"offsets-by-time: timestamps": "it tells the time that was asked for instead of the record's",
	"offsets-by-time: max":        "it asks for offsets in version 5, which has no such special value",
	"offsets-by-time: tiered":     "it asks for offsets in version 5, which has no such special values",
}

var cannotConsole = map[string]string{
	"txn-views: partitions": "one run of the tool for each partition",
	"txn-views: produce":    noTransactions,
	"txn-fenced":            noTransactions,
	"txn-timeout":           noTransactions,
	"txn-copy":              noTransactions,
	"copy-sigkill":          noTransactions,

	"binary":          "keys and values are lines of text",
	"create-time":     "it takes no timestamps",
	"future-time":     "it takes no timestamps",
	"compact-topic":   oneRowAtATime,
	"resend":          resendReason,
	"partitions-8":    "it does not choose partitions",
	"out-of-range":    "it always has a reset policy",
	"offsets-by-time": "it lists no offsets",
	"delete-records":  "no administration",
	"long-poll":       oneRowAtATime,
	"one-byte-fetch":  "no such option",
	"topic-life":      "no administration",
	"metadata":        "it shows no metadata",
	"partitions-500":  "it does not choose partitions",
	"restart-sigterm": oneRowAtATime,
	"restart-sigkill": oneRowAtATime,
	"group-sigterm":   oneRowAtATime,
	"group-sigkill":   oneRowAtATime,
	"group-shares":    oneRowAtATime,
	"group-death":     oneRowAtATime,
	"group-churn":     oneRowAtATime,
	"group-crash":     oneRowAtATime,
	"group-seek":      "a member reads from where the group has committed",
	"group-admin":     "it sets no offsets",
	"group-500":       oneRowAtATime,
}

// Cannot is the reason why a client cannot express a row, or a part of one ("row: part"), if there is one.
func Cannot(client, row string) (reason string, ok bool) {
	reason, ok = cannot[client][row]
	return reason, ok
}

// Can says whether the cell's client can express a part of its scenario, by the words of cannot.go behind the colon.
func (t *T) Can(part string) bool {
	_, ok := Cannot(t.Client.Name(), t.Name+": "+part)
	return !ok
}

// Reasons are the exceptions of a client, "row" or "row: part" with the reason, sorted; those that old has added are not among them.
func Reasons(client string) [][2]string {
	var list [][2]string
	for row, reason := range cannot[client] {
		if strings.HasSuffix(row, oldTransactions) {
			continue
		}
		list = append(list, [2]string{row, reason})
	}
	slices.SortFunc(list, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return list
}
