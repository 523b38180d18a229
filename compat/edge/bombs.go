package edge

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Topics that the bombs are sent to, which the caller makes: one that stores batches as they come, and one that compresses anew, so
// that the server has to look inside.
const (
	PlainTopic      = "edge-plain"
	RecompressTopic = "edge-recompress"
)

// largestKey is above every API key.
const largestKey = 100

// hugeCounts are the ends of requests that announce arrays of billions of elements: as int32, as a compact length, as both after a
// null string, and with every bit set.
var hugeCounts = [][]byte{
	{0x7f, 0xff, 0xff, 0xff},
	{0xff, 0xff, 0xff, 0xff, 0x0f},
	{0xff, 0xff, 0x7f, 0xff, 0xff, 0xff},
	{0x00, 0xff, 0xff, 0xff, 0xff, 0x07},
	{0x00, 0x00, 0x00, 0x01, 0x7f, 0xff, 0xff, 0xff},
	{0x02, 0x02, 'a', 0xff, 0xff, 0xff, 0xff, 0x07},
	bytes.Repeat([]byte{0xff}, 64),
	bytes.Repeat([]byte{0x7f}, 64),
}

// arrayBombs sends, for every API and version, the request's own bytes cut after every length and followed by huge counts, many to a
// connection until the server closes it.
func arrayBombs(ctx context.Context, addr string) error {
	for key := range int16(largestKey) {
		req := kmsg.RequestForKey(key)
		if req == nil {
			continue
		}
		for version := int16(0); version <= req.MaxVersion(); version++ {
			req.SetVersion(version)
			body := req.AppendTo(nil)
			head := request(req)
			head = head[4 : len(head)-len(body)]
			var frames []byte
			for cut := range min(len(body)+1, 48) {
				bomb := hugeCounts[cut%len(hugeCounts)]
				frames = append(frames, prefixed(slices.Concat(head, body[:cut], bomb))...)
			}
			if err := floods(ctx, addr, frames); err != nil {
				return fmt.Errorf("API %d version %d: %w", key, version, err)
			}
		}
	}
	return nil
}

// tagBombs puts a huge number of tagged fields, and one huge tagged field, into the headers and at the end of requests.
func tagBombs(ctx context.Context, addr string) error {
	for key := range int16(largestKey) {
		req := kmsg.RequestForKey(key)
		if req == nil {
			continue
		}
		req.SetVersion(req.MaxVersion())
		if !req.IsFlexible() {
			continue
		}
		body := req.AppendTo(nil)
		head := request(req)
		head = head[4 : len(head)-len(body)]
		var frames []byte
		for _, tags := range [][]byte{
			{0xff, 0xff, 0xff, 0xff, 0x0f},
			{0xff, 0xff, 0xff, 0xff, 0x07, 0x00, 0x00},
			{0x01, 0x00, 0xff, 0xff, 0xff, 0xff, 0x07},
			{0x01, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x01, 0x00},
		} {
			frames = append(frames, prefixed(slices.Concat(head[:len(head)-1], tags, body))...)
			frames = append(frames, prefixed(slices.Concat(head, body[:len(body)-1], tags))...)
		}
		if err := floods(ctx, addr, frames); err != nil {
			return fmt.Errorf("API %d: %w", key, err)
		}
	}
	return nil
}

// floods sends frames one after another, on new connections after each close, and reads what is answered. Every frame must have been
// answered or have closed its connection, which reading to the end shows.
func floods(ctx context.Context, addr string, frames []byte) error {
	for len(frames) > 0 {
		conn, err := dial(ctx, addr)
		if err != nil {
			return err
		}
		answered, err := answersUntilClosed(conn, frames)
		_ = conn.Close()
		if err != nil {
			return err
		}
		for range answered + 1 { // the answered ones, and the one for which it was closed
			if len(frames) == 0 {
				break
			}
			frames = frames[4+binary.BigEndian.Uint32(frames):]
		}
	}
	return nil
}

type writeCloser interface{ CloseWrite() error }

// answersUntilClosed sends all frames and counts the answers until the server closes.
func answersUntilClosed(conn io.ReadWriter, frames []byte) (int, error) {
	if _, err := conn.Write(frames); err != nil {
		return 0, nil
	}
	if half, ok := conn.(writeCloser); ok {
		_ = half.CloseWrite() // or the server has closed it
	}
	answers := 0
	for {
		var size [4]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			var timeout interface{ Timeout() bool }
			if errors.As(err, &timeout) && timeout.Timeout() {
				return answers, fmt.Errorf("neither an answer nor the end after %d answers: %w", answers, err)
			}
			return answers, nil
		}
		n := binary.BigEndian.Uint32(size[:])
		if n < 4 || n > 4<<20 {
			return answers, fmt.Errorf("an answer of %d bytes", n)
		}
		if _, err := io.CopyN(io.Discard, conn, int64(n)); err != nil {
			return answers, nil
		}
		answers++
	}
}

// bombBytes is what a bomb expands to: more than the control group has.
const bombBytes = 1 << 30

// zeros is an endless zero.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// payload is the uncompressed form: one record that says that it is as long as everything.
func payload() io.Reader {
	var head []byte
	head = binary.AppendVarint(head, bombBytes-20)
	head = append(head, 0, 0, 0, 1)
	head = binary.AppendVarint(head, bombBytes-60)
	return io.LimitReader(io.MultiReader(bytes.NewReader(head), zeros{}), bombBytes)
}

// bomb compresses the payload. The snappy and lz4 formats expand less, so that their bombs are smaller.
func bomb(codec int) ([]byte, error) {
	var out bytes.Buffer
	var w io.WriteCloser
	source := payload()
	switch codec {
	case 1:
		w, _ = gzip.NewWriterLevel(&out, gzip.BestSpeed)
	case 2:
		source = io.LimitReader(source, 64<<20)
		w = s2.NewWriter(&out, s2.WriterSnappyCompat())
	case 3:
		source = io.LimitReader(source, 128<<20)
		w = lz4.NewWriter(&out)
	case 4:
		encoder, err := zstd.NewWriter(&out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		w = encoder
	}
	if _, err := io.Copy(w, source); err != nil {
		return nil, err
	}
	return out.Bytes(), w.Close()
}

// batch is a record batch around a compressed payload; its checksum is right.
func batch(codec int, records []byte) []byte {
	tail := binary.BigEndian.AppendUint16(nil, uint16(codec))
	tail = binary.BigEndian.AppendUint32(tail, 0) // last offset delta
	tail = binary.BigEndian.AppendUint64(tail, 1_700_000_000_000)
	tail = binary.BigEndian.AppendUint64(tail, 1_700_000_000_000)
	tail = append(tail, bytes.Repeat([]byte{0xff}, 14)...) // no producer
	tail = binary.BigEndian.AppendUint32(tail, 1)
	tail = append(tail, records...)
	out := make([]byte, 8, 21+len(tail))
	out = binary.BigEndian.AppendUint32(out, uint32(len(tail)+9))
	out = append(out, 0xff, 0xff, 0xff, 0xff, 2)
	out = binary.BigEndian.AppendUint32(out, crc32.Checksum(tail, crc32.MakeTable(crc32.Castagnoli)))
	return append(out, tail...)
}

// produce is a Produce request of one batch.
func produce(topic string, records []byte) []byte {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 9, -1, 30_000
	part := kmsg.NewProduceRequestTopicPartition()
	part.Records = records
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.Partitions = topic, append(t.Partitions, part)
	req.Topics = append(req.Topics, t)
	return request(req)
}

// decompressionBombs produces batches that expand to a gigabyte, several at a time; each is refused or stored, and answered.
func decompressionBombs(ctx context.Context, addr string) error {
	for codec := 1; codec <= 4; codec++ {
		records, err := bomb(codec)
		if err != nil {
			return err
		}
		// The limit on a request's batch is the topic's max.message.bytes, of about 1 MB.
		if len(records) > 1_000_000 {
			records = records[:1_000_000]
		}
		for _, topic := range []string{PlainTopic, RecompressTopic} {
			frame := produce(topic, batch(codec, records))
			answers := make(chan error)
			for range 4 {
				go func() { answers <- closedOrAnswered(ctx, addr, frame) }()
			}
			for range 4 {
				err = errors.Join(err, <-answers)
			}
			if err != nil {
				return fmt.Errorf("codec %d, topic %s: %w", codec, topic, err)
			}
		}
	}
	return nil
}
