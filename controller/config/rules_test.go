package config

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// derived writes what Broker derives in the form of the golden file.
func derived(c *BrokerConfig) string {
	endpoints := func(all []Listener) string {
		var texts []string
		for _, l := range all {
			texts = append(texts, fmt.Sprintf("%s|%s|%s|%d", l.Name, l.Protocol, l.Host, l.Port))
		}
		return "[" + strings.Join(texts, " ") + "]"
	}
	var out strings.Builder
	controllers := slices.Clone(c.AdvertisedControllers)
	for i := range controllers {
		if controllers[i].Host == "" {
			controllers[i].Host = "localhost" // the canonical name where the golden was made
		}
	}
	fmt.Fprintf(&out, "listeners %s\nadvertised %s\ncontrollers %s\n", endpoints(c.Listeners), endpoints(c.AdvertisedListeners), endpoints(controllers))
	if c.Broker {
		fmt.Fprintf(&out, "inter-broker %s\n", c.InterBrokerListener)
	}
	var voters []string
	for _, v := range c.QuorumVoters {
		voters = append(voters, fmt.Sprintf("%d@%s", v.ID, hostPort(v.Host, v.Port)))
	}
	var servers []string
	for _, a := range c.BootstrapServers {
		servers = append(servers, hostPort(a.Host, a.Port))
	}
	fmt.Fprintf(&out, "voters %v\nbootstrap %v\ndirs %v %s\n", voters, servers, c.LogDirs, c.MetadataLogDir)
	topics := c.TopicDefaults(nil, nil).Topic("t", nil)
	fmt.Fprintf(&out, "retention %d roll %d jitter %d flush %d", topics.Long("retention.ms"), topics.Long("segment.ms"), topics.Long("segment.jitter.ms"), topics.Long("flush.ms"))
	return out.String()
}

// likeOurs brings Kafka's form to ours where they differ without meaning:
// voters print as resolved socket addresses, lists with commas.
func likeOurs(golden string) string {
	var out []string
	for _, line := range strings.Split(golden, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "voters":
			var voters []string
			for _, entry := range strings.Split(strings.Trim(rest, "{}"), ", ") {
				id, address, ok := strings.Cut(entry, "=")
				if !ok {
					continue
				}
				host, port := address[:strings.LastIndex(address, ":")], address[strings.LastIndex(address, ":")+1:]
				host, literal, _ := strings.Cut(host, "/")
				if host == "" {
					host = literal
				}
				if strings.HasPrefix(host, "0:0:") || strings.HasPrefix(host, "[0:0:") {
					host = "[::1]"
				}
				voters = append(voters, id+"@"+host+":"+port)
			}
			rest = "[" + strings.Join(voters, " ") + "]"
		case "bootstrap", "dirs":
			rest = strings.ReplaceAll(rest, ", ", " ")
		}
		out = append(out, word+" "+rest)
	}
	return strings.Join(out, "\n")
}

// TestRulesLikeKafka: sets of properties are taken or refused as Kafka does,
// and listeners, quorum, directories and times come out the same.
func TestRulesLikeKafka(t *testing.T) {
	raw, err := os.ReadFile("testdata/rules-4.4.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for _, block := range strings.Split(strings.TrimSpace(string(raw)), "\n\n") {
		given, golden, _ := strings.Cut(block, "\n----\n")
		cases++
		c, _, err := Broker(properties(given))
		if strings.HasPrefix(golden, "error") {
			if err == nil {
				t.Errorf("taken:\n%s\nKafka: %s", given, golden)
			}
			continue
		}
		if err != nil {
			t.Errorf("refused:\n%s\n%v", given, err)
			continue
		}
		want := likeOurs(golden)
		if !c.Broker {
			lines := slices.DeleteFunc(strings.Split(want, "\n"), func(l string) bool { return strings.HasPrefix(l, "inter-broker") })
			want = strings.Join(lines, "\n")
		}
		if got := derived(c); got != want {
			t.Errorf("%s\n got %s\nwant %s", given, got, want)
		}
	}
	if cases < 70 {
		t.Errorf("only %d cases", cases)
	}
}
