//go:build compat

package compat

import (
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/suite"
)

const transactionsTool = "TransactionsCommand"

func transactionToolCases() []toolCase {
	return []toolCase{
		{transactionsTool, "list, describe, force termination", transactionsListed},
		{transactionsTool, "find-hanging and abort", transactionsHanging},
	}
}

// transactions runs the tool with each line of arguments.
func (s *script) transactions(lines ...string) {
	s.t.Helper()
	for _, line := range lines {
		s.tool(transactionsTool, strings.Fields(line)...)
	}
}

// compareTables compares with the record, but for the columns of tables that differ from run to run.
func (s *script) compareTables(differ ...string) {
	s.t.Helper()
	text := s.text.String()
	s.text.Reset()
	var columns []string
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "\t")
		switch {
		case len(cells) == 1:
			columns = nil
		case columns == nil:
			columns = cells
		default:
			for i := range min(len(cells), len(columns)) {
				if name := strings.TrimPrefix(strings.TrimSpace(columns[i]), "1> "); slices.Contains(differ, name) && strings.TrimSpace(cells[i]) != "None" {
					cells[i] = strings.Repeat("*", len(cells[i]))
				}
			}
		}
		s.text.WriteString(strings.Join(cells, "\t"))
	}
	s.compare()
}

func transactionsListed(t *toolT) {
	t.create("transactions", 2, nil)
	client, err := kgo.NewClient(kgo.SeedBrokers(t.node.Addr()), kgo.TransactionalID("listed"), kgo.TransactionTimeout(cellLimit), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for p := range int32(2) {
		if err := client.ProduceSync(t.ctx, &kgo.Record{Topic: "transactions", Partition: p, Value: []byte("open")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	s := t.script("transactions")
	s.note("a transaction is open")
	s.transactions(
		"list --transactional-id-pattern list.*", "list --transactional-id-pattern list.* --duration-filter -1",
		"list --transactional-id-pattern list.* --duration-filter 3600000", "list --transactional-id-pattern un.*",
		"describe --transactional-id listed", "describe --transactional-id nobody",
		"describe-producers --topic transactions --partition 1", "describe-producers --broker-id 1 --topic transactions --partition 0",
		"find-hanging", "find-hanging --partition 0", "find-hanging --topic transactions", "find-hanging --broker-id 7",
		"abort --topic transactions --partition 0 --start-offset 5", "abort --topic transactions --partition 0",
		"forceTerminateTransaction --transactionalId listed", "forceTerminateTransaction --transactionalId nobody",
	)
	s.note("it is not open any more")
	t.ends("transactions", 2, 2)
	s.transactions("list --transactional-id-pattern list.*", "describe --transactional-id listed", "describe-producers --topic transactions --partition 1")
	if err := client.EndTransaction(t.ctx, kgo.TryCommit); suite.ErrorName(err) != "PRODUCER_FENCED" {
		t.Errorf("a transaction that was terminated by force is committed: %v", err)
	}
	s.compareTables("ProducerId", "LastTimestamp", "CurrentTransactionStartTimeMs", "TransactionDurationMs")
}

// ends waits until the last stable offset of so many partitions is this.
func (t *toolT) ends(topic string, partitions int, want int64) {
	t.Helper()
	err := suite.Eventually(t.ctx, func() error {
		for p := range int32(partitions) {
			at, err := t.ref.LastStable(t.ctx, topic, p)
			if err == nil && at != want {
				err = &suite.KafkaError{Name: "last stable offset", Message: topic}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// transactionsHanging makes a transaction of which the coordinator knows nothing, an hour ago, and one a minute ago.
func transactionsHanging(t *toolT) {
	t.create("hangs", 1, nil)
	t.create("hurries", 1, nil)
	t.verifyTransactions("false")
	defer t.verifyTransactions("true")
	for _, id := range []string{"hangs", "hurries"} {
		at := time.Minute
		if id == "hangs" {
			at = time.Hour
		}
		err := suite.Eventually(t.ctx, func() error { // the broker takes the new configuration a moment later
			_, err := t.ref.Hang(t.ctx, id, id, time.Now().Add(-at))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	s := t.script("transactions-hanging")
	s.transactions(
		"find-hanging --topic hangs", "find-hanging --topic hangs --partition 0", "find-hanging --topic hangs --max-transaction-timeout 90",
		"find-hanging --topic hurries", "find-hanging --broker-id 1",
		"describe-producers --topic hangs --partition 0", "describe --transactional-id hangs",
		"abort --topic hangs --partition 0 --start-offset 5", "abort --topic hangs --partition 0 --start-offset 0",
	)
	t.ends("hangs", 1, 2)
	s.note("the last stable offset is the end")
	s.transactions(
		"find-hanging --topic hangs", "abort --topic hangs --partition 0 --start-offset 0", "describe-producers --topic hangs --partition 0",
		"abort --topic hurries --partition 0 --producer-id 1", "abort --topic hurries --partition 0 --start-offset 0",
	)
	t.ends("hurries", 1, 2)
	s.compareTables("ProducerId", "LastTimestamp", "CurrentTransactionStartTimeMs", "TransactionDurationMs", "Duration(min)")
}

// verifyTransactions says whether brokers ask the coordinator for the transaction of a batch.
func (t *toolT) verifyTransactions(value string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(t.node.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answers, err := kadm.NewClient(client).AlterBrokerConfigs(t.ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "transaction.partition.verification.enable", Value: &value}})
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		t.Fatal(err)
	}
}
