package harness

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// socketStates are the states of Linux's /proc/net/tcp that matter to whoever wonders why a program hangs.
var socketStates = map[string]string{"01": "established", "02": "connecting", "04": "closing", "05": "closing", "08": "closed by the other side"}

// Connections tells the connections that a process has to the port of an address, as Linux sees them, with the bytes that wait: what the
// process has not read although it has come, and what it has sent and was not acknowledged.
func Connections(pid int, addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err.Error()
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return err.Error()
	}
	wanted := ":" + strings.ToUpper(hex.EncodeToString([]byte{byte(number >> 8), byte(number)}))
	own := socketsOf(pid)
	var found []string
	for _, table := range []string{"tcp", "tcp6"} {
		file, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			return err.Error()
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			// sl, local, remote, state, tx:rx, timer, retransmits, uid, timeout, inode
			fields := strings.Fields(lines.Text())
			if len(fields) < 10 || !strings.HasSuffix(fields[2], wanted) || !own[fields[9]] {
				continue
			}
			state, ok := socketStates[fields[3]]
			if !ok {
				state = "in state " + fields[3]
			}
			unsent, unread := fields[4][:8], fields[4][9:]
			found = append(found, fmt.Sprintf("%s (%s unread, %s unacknowledged)", state, bytesIn(unread), bytesIn(unsent)))
		}
		_ = file.Close()
	}
	slices.Sort(found)
	return fmt.Sprintf("%d connections: %s", len(found), strings.Join(found, ", "))
}

func bytesIn(digits string) string {
	n, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return digits
	}
	return strconv.FormatUint(n, 10)
}

// socketsOf are the inodes of a process's sockets.
func socketsOf(pid int) map[string]bool {
	own := map[string]bool{}
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, link := range links {
		to, err := os.Readlink(link)
		if inode, ok := strings.CutPrefix(to, "socket:["); err == nil && ok {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return own
}
