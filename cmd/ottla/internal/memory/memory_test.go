package memory

import (
	"os"
	"testing"
)

func TestGrantedMemory(t *testing.T) {
	const meminfo = "MemTotal:       24598536 kB\nMemFree:        1 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing is known": {nil, 0},
		"a machine":        {map[string]string{"/proc/meminfo": meminfo}, 24598536 * 1024},
		"version 1, the parent's limit is smaller": {map[string]string{
			"/proc/meminfo": meminfo, "/proc/self/cgroup": "9:cpu,cpuacct:/a\n4:memory:/a/b\n",
			"/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "300000000\n",
			"/sys/fs/cgroup/memory/a/memory.limit_in_bytes":   "200000000\n",
			"/sys/fs/cgroup/memory/memory.limit_in_bytes":     "9223372036854771712\n",
			"/sys/fs/cgroup/a/memory.max":                     "5\n",
		}, 200000000},
		"version 2": {map[string]string{
			"/proc/meminfo": meminfo, "/proc/self/cgroup": "0::/kube/pod\n",
			"/sys/fs/cgroup/kube/pod/memory.max": "268435456\n", "/sys/fs/cgroup/kube/memory.max": "max\n",
		}, 268435456},
		"in a container, with the host's path": {map[string]string{
			"/proc/meminfo": meminfo, "/proc/self/cgroup": "0::/system.slice/x\n", "/sys/fs/cgroup/memory.max": "1000000\n",
		}, 1000000},
		"garbage": {map[string]string{
			"/proc/meminfo": "MemTotal: much\n", "/proc/self/cgroup": "memory\n0::\n", "/sys/fs/cgroup/memory.max": "-\n",
		}, 0},
	} {
		got := Granted(func(name string) ([]byte, error) {
			text, found := c.files[name]
			if !found {
				return nil, os.ErrNotExist
			}
			return []byte(text), nil
		})
		if got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}
