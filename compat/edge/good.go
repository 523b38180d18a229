package edge

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Good is a client that behaves. It writes a record, reads it back, and so on, on connections that it keeps.
type Good struct {
	rounds atomic.Int64
	cancel context.CancelFunc
	ended  chan error
}

// StartGood starts a good client on a topic of one partition that must exist and be empty.
func StartGood(ctx context.Context, addr, topic string) (*Good, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(topic),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(0)}}),
		kgo.ProducerLinger(0), kgo.FetchMaxWait(time.Second), kgo.RecordDeliveryTimeout(3*time.Minute))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	g := &Good{cancel: cancel, ended: make(chan error, 1)}
	go func() {
		defer client.Close()
		g.ended <- g.run(ctx, client)
	}()
	return g, nil
}

func (g *Good) run(ctx context.Context, client *kgo.Client) error {
	for ctx.Err() == nil {
		round := g.rounds.Load()
		value := fmt.Appendf(nil, "round %d", round)
		if err := client.ProduceSync(ctx, &kgo.Record{Value: value}).FirstErr(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("round %d: produce: %w", round, err)
		}
		for ctx.Err() == nil {
			fetches := client.PollFetches(ctx)
			if err := fetches.Err(); err != nil && ctx.Err() == nil {
				return fmt.Errorf("round %d: fetch: %w", round, err)
			}
			records := fetches.Records()
			if len(records) == 0 {
				continue
			}
			if len(records) != 1 || records[0].Offset != round || !bytes.Equal(records[0].Value, value) {
				return fmt.Errorf("round %d: read %d records, the first %q at %d", round, len(records), records[0].Value, records[0].Offset)
			}
			break
		}
		if ctx.Err() == nil {
			g.rounds.Add(1)
		}
	}
	return nil
}

// Advance waits until the client has done n more rounds; its error ends the waiting.
func (g *Good) Advance(ctx context.Context, n int64) error {
	aim := g.rounds.Load() + n
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for g.rounds.Load() < aim {
		select {
		case err := <-g.ended:
			g.ended <- err
			return fmt.Errorf("the good client ended: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("the good client came to round %d of %d: %w", g.rounds.Load(), aim, ctx.Err())
		case <-ticker.C:
		}
	}
	return nil
}

// Rounds is how many records were written and read back.
func (g *Good) Rounds() int64 { return g.rounds.Load() }

// Stop ends the client and tells what went wrong, if anything did.
func (g *Good) Stop() error {
	g.cancel()
	return <-g.ended
}
