package metrics

import (
	"cmp"
	"slices"
	"time"

	"ottla/protocol"
	"ottla/protocol/server"
)

var (
	requestsTotal = counter("kafka_network_requestmetrics_requests_total", "Requests answered, by API and version.", "request", "version")
	requestErrors = counter("kafka_network_requestmetrics_errors_total", "Error codes in replies, NONE too, of each partition where there are several.", "request", "error")
	requestTimes  = gauge("kafka_network_requestmetrics_totaltimems",
		"Milliseconds from the last byte of a request to its reply being ready, waiting included: percentiles of the last five to ten minutes.", "request", "quantile")
	requestCount  = count("kafka_network_requestmetrics_totaltimems", "Requests answered.", "request")
	requestTime   = counter("ottla_request_time_ms_total", "The same times, summed.", "request")
	requestClosed = counter("ottla_requests_closed_total", "Requests that were answered by ending the connection.", "request")

	connectionCount   = gauge("kafka_server_socket_server_metrics_connection_count", "Connections of the moment.", "listener", "networkProcessor")
	connectionCreated = counter("kafka_server_socket_server_metrics_connection_creation_total", "Connections taken.", "listener", "networkProcessor")
	connectionClosed  = counter("kafka_server_socket_server_metrics_connection_close_total", "Connections ended.", "listener", "networkProcessor")
	incomingBytes     = counter("kafka_server_socket_server_metrics_incoming_byte_total", "Bytes of requests.", "listener", "networkProcessor")
	outgoingBytes     = counter("kafka_server_socket_server_metrics_outgoing_byte_total", "Bytes of replies.", "listener", "networkProcessor")
	requestsRead      = counter("kafka_server_socket_server_metrics_request_total", "Requests read.", "listener", "networkProcessor")
	idleKilled        = gauge("kafka_network_socketserver_expiredconnectionskilledcount", "Connections ended for being idle.")
	memoryUsed        = gauge("kafka_network_socketserver_memorypoolused", "Bytes that requests hold at the moment.")
	refusedByLimit    = counter("ottla_connections_refused_total", "Connections closed at once by a limit.", "listener")
	malformed         = counter("ottla_connections_malformed_total", "Connections ended for what they sent.", "listener")
	sentByFile        = counter("ottla_sendfile_bytes_total", "Bytes of replies that went from the file to the socket without a copy.", "listener")
)

// soleProcessor is the label for Kafka's network threads: there are none here.
const soleProcessor = "0"

// requestView is the counters of one name of the label request.
type requestView struct {
	versions [32]int64
	times    buckets
	micros   int64
	closed   int64
	errors   map[protocol.ErrorCode]int64
	count    int64
}

func (v *requestView) add(stats *server.RequestStats) {
	for i := range stats.Versions {
		n := stats.Versions[i].Load()
		v.versions[i] += n
		v.count += n
	}
	for i := range stats.Times {
		v.times[i] += stats.Times[i].Load()
	}
	v.micros += stats.Micros.Load()
	stats.EachError(func(code protocol.ErrorCode, count int64) { v.errors[code] += count })
	v.closed += stats.Closed.Load()
}

func (c *Collector) collectNetwork(p page, now time.Time) {
	if c.source.Servers == nil {
		return
	}
	servers := c.source.Servers()
	var killed, held int64
	for _, s := range servers {
		s.EachListener(func(name string, stats *server.Stats) {
			accepted, open := stats.Accepted.Load(), stats.Open.Load()
			p.put(connectionCount, float64(open), name, soleProcessor)
			p.put(connectionCreated, float64(accepted), name, soleProcessor)
			p.put(connectionClosed, float64(max(0, accepted-open)), name, soleProcessor)
			p.put(incomingBytes, float64(stats.BytesIn.Load()), name, soleProcessor)
			p.put(outgoingBytes, float64(stats.BytesOut.Load()), name, soleProcessor)
			p.put(requestsRead, float64(stats.Requests.Load()), name, soleProcessor)
			p.put(refusedByLimit, float64(stats.Refused.Load()), name)
			p.put(malformed, float64(stats.Malformed.Load()), name)
			p.put(sentByFile, float64(stats.SendfileBytes.Load()), name)
			killed += stats.IdleClosed.Load()
			held += stats.MemoryHeld()
		})
	}
	p.put(idleKilled, float64(killed))
	p.put(memoryUsed, float64(held))
	c.collectRequests(p, now, servers)
}

func (c *Collector) collectRequests(p page, now time.Time, servers []*server.Server) {
	views := map[string]*requestView{}
	add := func(name string, stats *server.RequestStats) {
		if views[name] == nil {
			views[name] = &requestView{errors: map[protocol.ErrorCode]int64{}}
		}
		views[name].add(stats)
	}
	for _, s := range servers {
		s.EachRequest(func(key protocol.APIKey, follower bool, stats *server.RequestStats) {
			add(key.String(), stats)
			switch { // Kafka shows fetches as all, and as either kind
			case follower:
				add("FetchFollower", stats)
			case key == protocol.Fetch:
				add("FetchConsumer", stats)
			}
		})
	}
	for _, name := range sortedKeys(views) {
		v := views[name]
		for version, n := range v.versions {
			if n > 0 {
				p.put(requestsTotal, float64(n), name, number(version))
			}
		}
		for _, code := range sortedKeys(v.errors) {
			p.put(requestErrors, float64(v.errors[code]), name, code.String())
		}
		p.put(requestCount, float64(v.count), name)
		p.put(requestTime, float64(v.micros)/1000, name)
		p.put(requestClosed, float64(v.closed), name)
		for i, value := range c.percentiles.of(name, now, &v.times) {
			p.put(requestTimes, value, name, quantiles[i].label)
		}
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
