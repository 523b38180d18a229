package memory

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// Granted finds out how many bytes of memory this process may use: the
// smallest limit of its control groups (Linux, both versions), else what the
// machine has. 0: it cannot be known.
func Granted(read func(name string) ([]byte, error)) int64 {
	most := int64(math.MaxInt64)
	for _, file := range append(limitFiles(read), "/proc/meminfo") {
		if limit := memoryIn(file, read); limit > 0 {
			most = min(most, limit)
		}
	}
	if most == math.MaxInt64 {
		return 0
	}
	return most
}

// limitFiles names the files with the limits of this process's control group
// and of those above it. In a container the path that the kernel tells may be
// the host's; then only the root of what is mounted there counts.
func limitFiles(read func(string) ([]byte, error)) []string {
	text, err := read("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	var files []string
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(fields) < 3 {
			continue
		}
		root, name := "/sys/fs/cgroup", "memory.max"
		switch {
		case fields[1] == "": // version 2
		case strings.Contains(","+fields[1]+",", ",memory,"):
			root, name = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for at := path.Clean("/" + fields[2]); ; at = path.Dir(at) {
			files = append(files, path.Join(root, at, name))
			if at == "/" {
				break
			}
		}
	}
	return files
}

// memoryIn reads a limit, or the MemTotal of meminfo. 0: there is none.
func memoryIn(file string, read func(string) ([]byte, error)) int64 {
	text, err := read(file)
	if err != nil {
		return 0
	}
	scale := int64(1)
	if file == "/proc/meminfo" {
		text, scale = memTotal(text), 1024
	}
	bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || bytes > math.MaxInt64/scale { // "max", or a number that means none
		return 0
	}
	return bytes * scale
}

func memTotal(meminfo []byte) []byte {
	for lines := bufio.NewScanner(bytes.NewReader(meminfo)); lines.Scan(); {
		if rest, found := bytes.CutPrefix(lines.Bytes(), []byte("MemTotal:")); found {
			return bytes.TrimSuffix(bytes.TrimSpace(rest), []byte(" kB"))
		}
	}
	return nil
}

// heapShare is the part of the memory granted above which Go collects at once. Most of
// a broker's memory is the page cache, which is counted in a control group too.
const heapShare = 0.3

// leastHeapBytes is what the node needs to work at all.
const leastHeapBytes = 64 << 20

// LimitHeap tells the garbage collector of the memory granted, unless GOMEMLIMIT
// says something.
func LimitHeap(granted int64) {
	if granted > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(max(leastHeapBytes, int64(float64(granted)*heapShare)))
	}
}

// startPercent is how much garbage the collector lets come while the node starts, in
// percent of what is in use: nearly all that is allocated then stays, or is used
// until the end of the start.
const startPercent = 400

// muchBytes is a heap from which memory is given back to the system after the start.
const muchBytes = 64 << 20

// CollectLess lets garbage come until the function that it gives is called, unless
// GOGC says something.
func CollectLess() (usual func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(startPercent)
	return func() {
		debug.SetGCPercent(before)
		var heap runtime.MemStats
		if runtime.ReadMemStats(&heap); heap.HeapAlloc >= muchBytes {
			debug.FreeOSMemory()
		}
	}
}
