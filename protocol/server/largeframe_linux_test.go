package server

import (
	"fmt"
	"io"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol/wire"
)

// produceRequest is a Produce whose records are so many zero bytes, and which the
// echo below answers.
func produceRequest(id int32, bytes int) []byte {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks = 9, -1
	req.Topics = []kmsg.ProduceRequestTopic{{Topic: "t", Partitions: []kmsg.ProduceRequestTopicPartition{{Records: make([]byte, bytes)}}}}
	return wire.AppendRequest(nil, wire.RequestHeader{CorrelationID: id}, req)
}

var echoProduce = HandlerFunc(func(req *Request) {
	resp := kmsg.NewPtrProduceResponse()
	resp.Version = req.Header.Version
	req.Reply(resp)
})

// What a large request costs besides its meaning, sender included: time on a
// processor, and how often a thread has to wait.
func BenchmarkLargeFrame(b *testing.B) {
	for _, size := range []int{64 << 10, 256 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%d KiB", size>>10), func(b *testing.B) {
			const window = 5
			conn := benchConnectionWith(b, echoProduce, Options{ReceiveBufferBytes: 100 << 10, SendBufferBytes: 100 << 10})
			request := produceRequest(1, size)
			sent := make(chan struct{}, window)
			answered := make(chan error, 1)
			go func() {
				reply := make([]byte, 4+4+1+1+4+1)
				for range sent {
					if _, err := io.ReadFull(conn, reply); err != nil {
						answered <- err
						return
					}
				}
				answered <- nil
			}()
			b.SetBytes(int64(size))
			before := resources(b)
			for b.Loop() {
				if _, err := conn.Write(request); err != nil {
					b.Fatal(err)
				}
				sent <- struct{}{}
			}
			close(sent)
			if err := <-answered; err != nil {
				b.Fatal(err)
			}
			after := resources(b)
			used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
			b.ReportMetric(float64(used)/1e3/float64(b.N), "cpu-us/op")
			b.ReportMetric(float64(after.Nvcsw-before.Nvcsw)/float64(b.N), "switches/op")
		})
	}
}

func resources(b *testing.B) (r syscall.Rusage) {
	b.Helper()
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return r
}
