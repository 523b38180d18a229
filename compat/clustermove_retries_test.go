//go:build compat

package compat

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"ottla/compat/harness"
)

// retries are what a producer asks again of the next coordinator, after what it had done with the one before: steps of its
// transactional id, and what it is told, which is a code and the epoch to go on with. An end of transactions v2 is commit or abort, one
// of v1 commit4 or abort4; hold adds a partition that takes no marker. Ottla says otherwise where ottla is given (DIFFERENCES 12).
var retries = []struct{ before, again, told, ottla string }{
	{"init add", "commit:0", "NONE 1", ""},
	{"init add", "abort:0", "NONE 1", ""},
	{"init add", "commit4:0", "NONE", ""},
	{"init add", "init:0", "NONE 1", ""},
	{"init add commit:0", "commit:0", "NONE 1", ""},
	{"init add commit:0", "abort:0", "INVALID_TXN_STATE", ""},
	{"init add commit:0", "commit:1", "INVALID_TXN_STATE", ""},
	{"init add commit:0", "abort:1", "NONE 2", ""},
	{"init add commit:0", "init:0", "PRODUCER_FENCED", "NONE 1"},
	{"init add commit:0", "init:1", "NONE 2", ""},
	{"init add abort:0", "abort:0", "NONE 1", ""},
	{"init add abort:0", "commit:0", "INVALID_TXN_STATE", ""},
	{"init add abort:0", "init:0", "PRODUCER_FENCED", "NONE 1"},
	{"init add abort:0", "init", "NONE 2", ""},
	{"init add commit4:0", "commit4:0", "NONE", ""},
	{"init add commit4:0", "abort4:0", "INVALID_TXN_STATE", ""},
	{"init add commit4:0", "init:0", "NONE 1", ""},
	{"init", "commit:0", "INVALID_TXN_STATE", ""},
	{"init", "abort:0", "NONE 1", ""},
	{"init init", "abort:0", "PRODUCER_FENCED", ""},
	{"init init", "init:0", "PRODUCER_FENCED", ""},
	{"init add init", "abort:0", "PRODUCER_FENCED", ""},
	{"init hold commit:0", "commit:0", "NONE 1", ""},
	{"init hold commit:0", "abort:0", "INVALID_TXN_STATE", ""},
	{"init hold abort:0", "abort:0", "NONE 1", ""},
	{"init hold abort:0", "init:0", "PRODUCER_FENCED", "NONE 1"},
	{"init hold commit4:0", "commit4:0", "NONE", ""},
}

// TestTransactionRetries asks all that of each kind of broker, after what each kind has written: a producer that follows Kafka's rules
// is not fenced because the coordinator is another.
func TestTransactionRetries(t *testing.T) {
	c := startCluster(t, harness.ClusterOptions{Controllers: 1, Features: harness.LetIn})
	b := addBroker(t, c, harness.Kafka, nil)
	r := &retrying{T: t, client: clusterClient(t, c.Bootstrap()), before5: clusterClient(t, c.Bootstrap(), kgo.MaxVersions(kversion.V3_0_0()))}
	createTopic(t, r.client, "plain", 1, 1)
	createTopic(t, r.client, "held", 1, 1)
	for round, next := range []harness.Kind{harness.Kafka, harness.Ottla, harness.Ottla, harness.Kafka} {
		from := b.Kind
		r.round = fmt.Sprintf("%d-%s-%s", round, from, next)
		r.hold(true)
		for i := range retries {
			for step := range strings.FieldsSeq(retries[i].before) {
				if told := r.do(i, step); !strings.HasPrefix(told, "NONE") {
					t.Fatalf("%s, %s of %s: %s", r.round, step, retries[i].before, told)
				}
			}
		}
		stopMember(t, b)
		b.Kind = next
		startMember(t, b)
		r.hold(false)
		for i, is := range retries {
			want := is.told
			if next == harness.Ottla {
				want = cmp.Or(is.ottla, want)
			}
			if told := r.do(i, is.again); told != want {
				t.Errorf("%s, after %s of %s: %s is told %s, not %s", serverName(next), is.before, serverName(from), is.again, told, want)
			}
		}
		harness.Progress("%d retries at %s after %s", len(retries), serverName(next), serverName(from))
	}
}

// retrying is who asks.
type retrying struct {
	*testing.T
	client, before5 *kgo.Client
	round           string
	ids             map[string]int64
}

// hold has the topic take no markers: it has fewer replicas than it wants in sync.
func (r *retrying) hold(on bool) {
	r.Helper()
	least := "1"
	if on {
		least = "2"
	}
	eventually(r.T, "a setting", func(ctx context.Context) error {
		_, err := kadm.NewClient(r.client).AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "min.insync.replicas", Value: &least}}, "held")
		return err
	})
}

// do does one step of the transactional id of a line until the answer is final, and gives that.
func (r *retrying) do(line int, step string) (told string) {
	r.Helper()
	id := fmt.Sprintf("%s-%d", r.round, line)
	eventually(r.T, step+" of "+id, func(ctx context.Context) (err error) {
		var code int16
		told, code, err = r.ask(ctx, id, step)
		if is := kerr.TypedErrorForCode(code); err == nil && is != nil && (is.Retriable || is == kerr.ConcurrentTransactions) {
			return is
		}
		return err
	})
	return told
}

// ask asks once.
func (r *retrying) ask(ctx context.Context, id, step string) (told string, code int16, err error) {
	name, epoch, _ := strings.Cut(step, ":")
	number, _ := strconv.ParseInt(epoch, 10, 16)
	switch name {
	case "init":
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &id, 600_000, -1, -1
		if epoch != "" {
			req.ProducerID, req.ProducerEpoch = r.ids[id], int16(number)
		}
		resp, err := req.RequestWith(ctx, r.client)
		if err != nil {
			return "", 0, err
		}
		if resp.ErrorCode == 0 {
			if r.ids == nil {
				r.ids = map[string]int64{}
			}
			r.ids[id] = resp.ProducerID
		}
		return codeAndEpoch(resp.ErrorCode, resp.ProducerEpoch), resp.ErrorCode, nil
	case "add", "hold":
		topic := map[string]string{"add": "plain", "hold": "held"}[name]
		req := kmsg.NewPtrAddPartitionsToTxnRequest()
		req.TransactionalID, req.ProducerID = id, r.ids[id]
		req.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: topic, Partitions: []int32{0}}}
		resp, err := req.RequestWith(ctx, r.before5)
		if err != nil {
			return "", 0, err
		}
		code := resp.Topics[0].Partitions[0].ErrorCode
		return codeAndEpoch(code, -1), code, nil
	}
	req, client := kmsg.NewPtrEndTxnRequest(), r.client
	if strings.HasSuffix(name, "4") {
		client = r.before5
	}
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = id, r.ids[id], int16(number), strings.HasPrefix(name, "commit")
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return "", 0, err
	}
	return codeAndEpoch(resp.ErrorCode, resp.ProducerEpoch), resp.ErrorCode, nil
}

func codeAndEpoch(code, epoch int16) string {
	if err := kerr.TypedErrorForCode(code); err != nil {
		return err.Message
	}
	if epoch < 0 {
		return "NONE"
	}
	return fmt.Sprintf("NONE %d", epoch)
}
