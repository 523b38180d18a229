package datadir

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// perTransaction is how many records a transaction of java/Transactions.java has.
const perTransaction = 6

// stored is what is compared of a record.
type stored struct {
	partition int32
	offset    int64
	timestamp int64
	key       string
	value     string
}

// acked reads what java/Transactions.java said of a transaction.
func acked(said string) ([]stored, error) {
	words := strings.Fields(said)
	if len(words) != 1+perTransaction {
		return nil, fmt.Errorf("%q does not tell of %d records", said, perTransaction)
	}
	var records []stored
	for i, word := range words[1:] {
		r := stored{key: words[0], value: fmt.Sprintf("%s-%d", words[0], i)}
		if _, err := fmt.Sscanf(word, "%d:%d:%d", &r.partition, &r.offset, &r.timestamp); err != nil {
			return nil, fmt.Errorf("%q in %q: %w", word, said, err)
		}
		records = append(records, r)
	}
	return records, nil
}

// CheckAcked judges the transactions with a prefix that were written to the topic Leaving until the server died; said is what
// java/Transactions.java said of those that were acknowledged. Of these each record is where it was acknowledged, with its
// time, and is shown at both isolation levels; of the one behind all is there or nothing, and of the group's offset that is
// committed which belongs to the last, if it is the prefix that came last. It first ends the one that is under way, as its
// producer would that comes back, and gives its state of before.
//
// mayHang is for Apache Kafka, whose coordinator may call a transaction complete that it finds decided at a start, though no
// partition has its marker ("Couldn't find leader endpoint for partitions": testdata/control/README.md). What is undecided for
// good is then told in state, and of what was acknowledged it is judged that it is there.
func CheckAcked(ctx context.Context, addr, prefix string, said []string, last, mayHang bool) (state string, faults []string, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return "", nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	listed, err := admin.ListTransactions(ctx, nil, nil)
	if err != nil {
		return "", nil, err
	}
	if err := EndOpen(ctx, addr, Leaving); err != nil {
		return "", nil, err
	}
	hanging, err := hangs(ctx, admin)
	if err != nil {
		return "", nil, err
	}
	shown, committed, err := readLeaving(ctx, client, admin)
	if err != nil {
		return "", nil, err
	}
	state = listed[Leaving].State
	left := hanging != "" && mayHang
	switch {
	case left:
		state += ", and undecided for good in " + hanging
	case hanging != "":
		faults = append(faults, "undecided for good: "+hanging)
	}
	for _, line := range said {
		records, err := acked(line)
		if err != nil {
			return "", nil, err
		}
		for _, r := range records {
			if !shown[r] || !committed[r] && !left {
				faults = append(faults, fmt.Sprintf("acknowledged, %+v: shown %v, committed %v", r, shown[r], committed[r]))
			}
		}
	}
	if left {
		return state, faults, nil
	}
	counts := map[string]int{}
	for r := range committed {
		counts[r.key]++
	}
	n := len(said)
	for i := range n {
		if key := prefix + strconv.Itoa(i); counts[key] != perTransaction {
			faults = append(faults, fmt.Sprintf("transaction %s has %d records", key, counts[key]))
		}
	}
	switch behind := prefix + strconv.Itoa(n); counts[behind] {
	case 0:
		n--
	case perTransaction:
	default:
		faults = append(faults, fmt.Sprintf("of transaction %s, which was under way, there are %d records", behind, counts[behind]))
	}
	if last {
		offsets, err := admin.FetchOffsets(ctx, leavingGroup)
		if err != nil {
			return "", nil, err
		}
		o, ok := offsets.Lookup(Leaving, 0)
		if mayHang && o.At == int64(n)-1 {
			state += ", and the group's offset undecided for good"
		} else if !ok || o.Err != nil || o.At != int64(n) {
			faults = append(faults, fmt.Sprintf("the last transaction is %s%d, and the group has committed %+v", prefix, n, o))
		}
	}
	return state, faults, nil
}

// hangLimit is how long a transaction may stay undecided after its coordinator has ended it, on a busy machine.
const hangLimit = 30 * time.Second

// hangs waits until no partition of Leaving has an undecided transaction, and names those that have one after hangLimit.
func hangs(ctx context.Context, admin *kadm.Client) (string, error) {
	short, cancel := context.WithTimeout(ctx, hangLimit)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		ends, err := admin.ListEndOffsets(ctx, Leaving)
		if err != nil {
			return "", err
		}
		stable, err := admin.ListCommittedOffsets(ctx, Leaving)
		if err != nil {
			return "", err
		}
		var hanging []string
		ends.Each(func(end kadm.ListedOffset) {
			if at, ok := stable.Lookup(Leaving, end.Partition); !ok || at.Err != nil || at.Offset < end.Offset {
				hanging = append(hanging, fmt.Sprintf("%s-%d from %d to %d", Leaving, end.Partition, at.Offset, end.Offset))
			}
		})
		if len(hanging) == 0 {
			return "", nil
		}
		select {
		case <-ticker.C:
		case <-short.Done():
			slices.Sort(hanging)
			return strings.Join(hanging, ", "), ctx.Err()
		}
	}
}

// readLeaving reads the topic Leaving at both isolation levels, as committed what is decided.
func readLeaving(ctx context.Context, client *kgo.Client, admin *kadm.Client) (shown, committed map[stored]bool, err error) {
	ends, err := admin.ListEndOffsets(ctx, Leaving)
	if err != nil {
		return nil, nil, err
	}
	stable, err := admin.ListCommittedOffsets(ctx, Leaving)
	if err != nil {
		return nil, nil, err
	}
	shown, committed = map[stored]bool{}, map[stored]bool{}
	for p := range int32(len(ends[Leaving])) {
		end, _ := ends.Lookup(Leaving, p)
		decided, _ := stable.Lookup(Leaving, p)
		for level, into := range map[kgo.IsolationLevel]map[stored]bool{kgo.ReadUncommitted(): shown, kgo.ReadCommitted(): committed} {
			upTo := end.Offset
			if level == kgo.ReadCommitted() {
				upTo = decided.Offset
			}
			records, err := Read(ctx, client, Leaving, p, 0, upTo, level)
			if err := errors.Join(end.Err, decided.Err, err); err != nil {
				return nil, nil, err
			}
			for _, r := range records {
				if !r.Attrs.IsControl() {
					into[stored{p, r.Offset, r.Timestamp.UnixMilli(), string(r.Key), string(r.Value)}] = true
				}
			}
		}
	}
	return shown, committed, nil
}
