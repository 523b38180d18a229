import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The Java consumer, with partitions assigned by hand. */
final class ConsumerOps {
    private static final long LATEST = -1;
    private static final long EARLIEST = -2;

    private ConsumerOps() { }

    private static KafkaConsumer<byte[], byte[]> connect(Driver.Call call) {
        Properties p = new Properties();
        p.put("bootstrap.servers", call.text("bootstrap"));
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", call.text("reset").isEmpty() ? "none" : call.text("reset"));
        p.put("isolation.level", call.args().path("read_committed").asBoolean() ? "read_committed" : "read_uncommitted");
        p.put("reconnect.backoff.max.ms", 200);
        if (!call.text("rack").isEmpty()) {
            p.put("client.rack", call.text("rack"));
        }
        int wait = call.number("max_wait_ms", 0);
        if (wait > 0) {
            p.put("fetch.max.wait.ms", wait);
            p.put("request.timeout.ms", wait + 60_000);
            p.put("default.api.timeout.ms", wait + 60_000);
        }
        if (call.number("max_fetch_bytes", 0) > 0) {
            p.put("max.partition.fetch.bytes", call.number("max_fetch_bytes", 0));
        }
        return new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static JsonNode consume(Driver.Call call) throws Exception {
        KafkaConsumer<byte[], byte[]> consumer = connect(call);
        try {
            return read(consumer, call);
        } finally {
            // Without a limit, closing waits up to 30 s for a fetch that is under way.
            consumer.close(CloseOptions.timeout(Duration.ZERO));
        }
    }

    /** As consume, and how many bytes came from each broker. */
    static JsonNode consumeNear(Driver.Call call) throws Exception {
        KafkaConsumer<byte[], byte[]> consumer = connect(call);
        try {
            ObjectNode answer = Driver.JSON.createObjectNode();
            answer.set("records", read(consumer, call));
            ObjectNode bytes = answer.putObject("bytes");
            consumer.metrics().forEach((name, metric) -> {
                String node = name.tags().getOrDefault("node-id", "");
                if (name.name().equals("incoming-byte-total") && node.matches("node-\\d+")) {
                    bytes.put(node.substring("node-".length()), ((Double) metric.metricValue()).longValue());
                }
            });
            return answer;
        } finally {
            consumer.close(CloseOptions.timeout(Duration.ZERO));
        }
    }

    private static ArrayNode read(KafkaConsumer<byte[], byte[]> consumer, Driver.Call call) {
        ArrayNode records = Driver.JSON.createArrayNode();
        int count = call.number("count", 0);
        List<TopicPartition> partitions = assign(consumer, call);
        Map<TopicPartition, Long> ends = count > 0 || !call.text("until_value").isEmpty() ? new HashMap<>() : consumer.endOffsets(partitions);
        String until = call.text("until_value");
        boolean seen = false;
        while (!until.isEmpty() ? !seen : count > 0 ? records.size() < count : !reached(consumer, ends)) {
            for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(200))) {
                if (count == 0 || records.size() < count) {
                    records.add(json(r));
                }
                seen |= r.value() != null && until.equals(new String(r.value(), StandardCharsets.UTF_8));
            }
            call.progress(records.size());
        }
        return records;
    }

    private static List<TopicPartition> assign(KafkaConsumer<byte[], byte[]> consumer, Driver.Call call) {
        Map<TopicPartition, Long> from = new HashMap<>();
        call.args().path("from").fields().forEachRemaining(e ->
            from.put(new TopicPartition(call.text("topic"), Integer.parseInt(e.getKey())), e.getValue().asLong()));
        List<TopicPartition> partitions = new ArrayList<>(from.keySet());
        consumer.assign(partitions);
        from.forEach((partition, offset) -> {
            if (offset == EARLIEST) {
                consumer.seekToBeginning(List.of(partition));
            } else if (offset == LATEST) {
                consumer.seekToEnd(List.of(partition));
            } else {
                consumer.seek(partition, offset);
            }
        });
        return partitions;
    }

    private static boolean reached(KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, Long> ends) {
        for (Map.Entry<TopicPartition, Long> end : ends.entrySet()) {
            if (consumer.position(end.getKey()) < end.getValue()) {
                return false;
            }
        }
        return true;
    }

    static ObjectNode json(ConsumerRecord<byte[], byte[]> r) {
        ObjectNode n = Driver.JSON.createObjectNode();
        n.put("partition", r.partition()).put("offset", r.offset()).put("timestamp", r.timestamp());
        n.put("log_append", r.timestampType() == TimestampType.LOG_APPEND_TIME);
        n.put("key", r.key()).put("value", r.value());
        ArrayNode headers = n.putArray("headers");
        for (Header h : r.headers()) {
            headers.addObject().put("key", h.key()).put("value", h.value());
        }
        return n;
    }
}
