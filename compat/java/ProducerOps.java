import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The Java producer. */
final class ProducerOps {
    private ProducerOps() { }

    private static KafkaProducer<byte[], byte[]> connect(Driver.Call call) {
        Properties p = new Properties();
        p.put("bootstrap.servers", call.text("bootstrap"));
        p.put("acks", call.args().path("acks").asText().isEmpty() ? "all" : call.text("acks"));
        p.put("compression.type", call.text("codec").isEmpty() ? "none" : call.text("codec"));
        p.put("enable.idempotence", call.args().path("idempotent").asBoolean());
        p.put("linger.ms", call.number("linger_ms", 0));
        p.put("request.timeout.ms", 100_000); // what a busy machine is slow to answer would be sent again
        p.put("reconnect.backoff.max.ms", 200);
        if (call.number("batch_bytes", 0) > 0) {
            p.put("batch.size", call.number("batch_bytes", 0));
        }
        if (call.number("max_request_bytes", 0) > 0) {
            p.put("max.request.size", call.number("max_request_bytes", 0));
        }
        return new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static ProducerRecord<byte[], byte[]> record(String topic, JsonNode r) throws IOException {
        List<Header> headers = new ArrayList<>();
        for (JsonNode h : r.path("headers")) {
            headers.add(new RecordHeader(h.path("key").asText(), bytes(h.get("value"))));
        }
        long timestamp = r.path("timestamp").asLong();
        return new ProducerRecord<>(topic, r.path("partition").asInt(), timestamp == 0 ? null : timestamp,
            bytes(r.get("key")), bytes(r.get("value")), headers);
    }

    static byte[] bytes(JsonNode n) throws IOException {
        return n == null || n.isNull() ? null : n.binaryValue();
    }

    static ObjectNode ack(int partition, RecordMetadata m, Exception e) {
        ObjectNode n = Driver.JSON.createObjectNode();
        n.put("partition", partition);
        n.put("offset", e == null && m.hasOffset() ? m.offset() : -1);
        n.put("timestamp", e == null && m.hasTimestamp() ? m.timestamp() : -1);
        if (e != null) {
            String name = Driver.errorName(e);
            n.put("err", name.isEmpty() ? e.toString() : name);
        }
        return n;
    }

    static JsonNode produce(Driver.Call call) throws Exception {
        JsonNode records = call.args().path("records");
        ObjectNode[] acks = new ObjectNode[records.size()];
        boolean oneByOne = call.args().path("one_by_one").asBoolean();
        try (KafkaProducer<byte[], byte[]> producer = connect(call)) {
            for (int i = 0; i < acks.length; i++) {
                int at = i;
                int partition = records.get(i).path("partition").asInt();
                try {
                    producer.send(record(call.text("topic"), records.get(i)),
                        (m, e) -> acks[at] = ack(partition, m, e));
                } catch (Exception e) {
                    acks[at] = ack(partition, null, e);
                }
                if (oneByOne) {
                    producer.flush();
                }
            }
            producer.flush();
        }
        ArrayNode answer = Driver.JSON.createArrayNode();
        for (ObjectNode a : acks) {
            answer.add(a);
        }
        return answer;
    }

    static JsonNode stream(Driver.Call call) throws Exception {
        List<ObjectNode> acks = new ArrayList<>();
        Semaphore window = new Semaphore(Math.max(1, call.number("window", 1)));
        AtomicInteger acked = new AtomicInteger();
        try (KafkaProducer<byte[], byte[]> producer = connect(call)) {
            for (int i = 0; !call.stopped().get(); i++) {
                window.acquire();
                ObjectNode slot = Driver.JSON.createObjectNode();
                acks.add(slot);
                byte[] value = (call.text("prefix") + i).getBytes(StandardCharsets.UTF_8);
                producer.send(new ProducerRecord<>(call.text("topic"), 0, null, value), (m, e) -> {
                    slot.setAll(ack(0, m, e));
                    window.release();
                    call.progress(acked.incrementAndGet());
                });
                Thread.sleep(call.number("pause_ms", 0));
            }
            producer.flush();
        }
        return Driver.JSON.createArrayNode().addAll(acks);
    }
}
