package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// batchFigure is how large the batches are that a client has sent: it decides by itself how much it gathers, so two servers
// need not have had the same work.
func (s *server) batchFigure(topic string) (figure, error) {
	files, err := filepath.Glob(filepath.Join(s.brokers[0].DataDir(), topic+"-*", "*.log"))
	if err != nil {
		return figure{}, err
	}
	var batches, total int64
	for _, path := range files {
		count, size, err := countBatches(path)
		if err != nil {
			return figure{}, err
		}
		batches, total = batches+count, total+size
	}
	if batches == 0 {
		return figure{}, fmt.Errorf("%s holds no batch of %s", s.brokers[0].DataDir(), topic)
	}
	return figure{name: "KB/batch", value: float64(total) / 1e3 / float64(batches), neutral: true}, nil
}

// countBatches walks over a segment, from length to length.
func countBatches(path string) (count, size int64, err error) {
	const overhead = 12 // base offset and length
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = file.Close() }()
	var head [overhead]byte
	for {
		_, err := file.ReadAt(head[:], size)
		if errors.Is(err, io.EOF) {
			return count, size, nil
		}
		if err != nil {
			return 0, 0, err
		}
		count++
		size += overhead + int64(binary.BigEndian.Uint32(head[8:]))
	}
}
