import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The Java producer in transactions, by itself, and with a consumer whose offsets go with them. */
final class TransactionOps {
    private TransactionOps() { }

    private static KafkaProducer<byte[], byte[]> producer(Driver.Call call) {
        Properties p = new Properties();
        p.put("bootstrap.servers", call.text("bootstrap"));
        p.put("transactional.id", call.text("transactional_id"));
        p.put("linger.ms", 5);
        p.put("reconnect.backoff.max.ms", 200);
        if (call.number("timeout_ms", 0) > 0) {
            p.put("transaction.timeout.ms", call.number("timeout_ms", 0));
        }
        return new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static KafkaConsumer<byte[], byte[]> consumer(Driver.Call call, int batch) {
        Properties p = new Properties();
        p.put("bootstrap.servers", call.text("bootstrap"));
        p.put("group.id", call.text("group"));
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", "earliest");
        p.put("isolation.level", "read_committed");
        p.put("max.poll.records", batch);
        p.put("session.timeout.ms", call.number("session_ms", 0));
        p.put("heartbeat.interval.ms", call.number("session_ms", 0) / 10);
        p.put("reconnect.backoff.max.ms", 200);
        return new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static JsonNode transact(Driver.Call call) throws Exception {
        ArrayNode answer = Driver.JSON.createArrayNode();
        KafkaProducer<byte[], byte[]> producer = producer(call);
        try {
            producer.initTransactions();
            for (JsonNode transaction : call.args().path("transactions")) {
                JsonNode records = transaction.path("records");
                ObjectNode[] acks = new ObjectNode[records.size()];
                producer.beginTransaction();
                for (int i = 0; i < acks.length; i++) {
                    int at = i;
                    int partition = records.get(i).path("partition").asInt();
                    producer.send(ProducerOps.record(call.text("topic"), records.get(i)), (m, e) -> acks[at] = ProducerOps.ack(partition, m, e));
                }
                producer.flush();
                answer.add(Driver.JSON.createArrayNode().addAll(List.of(acks)));
                switch (transaction.path("end").asText()) {
                    case "commit" -> producer.commitTransaction();
                    case "abort" -> producer.abortTransaction();
                    default -> linger(call, producer, answer.size());
                }
            }
        } finally {
            producer.close(Duration.ofSeconds(10));
        }
        return answer;
    }

    private static void linger(Driver.Call call, KafkaProducer<byte[], byte[]> producer, int begun) throws InterruptedException {
        call.progress(begun);
        while (!call.stopped().get()) {
            Thread.sleep(20);
        }
        producer.commitTransaction();
    }

    /** What a copy loop has done. */
    private static final class Copied {
        int records;
        int commits;
        int aborts;

        JsonNode json() {
            return Driver.JSON.createObjectNode().put("records", records).put("commits", commits).put("aborts", aborts);
        }
    }

    static JsonNode copy(Driver.Call call) {
        Copied done = new Copied();
        int die = call.number("die", 0);
        KafkaProducer<byte[], byte[]> producer = producer(call);
        KafkaConsumer<byte[], byte[]> consumer = consumer(call, call.number("batch", 100));
        Duration patience = Duration.ofSeconds(10);
        CloseOptions close = CloseOptions.timeout(patience);
        try {
            producer.initTransactions();
            consumer.subscribe(List.of(call.text("from")));
            while (!call.stopped().get()) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
                if (records.isEmpty()) {
                    continue;
                }
                if (die > 0 && done.records >= die) { // a producer that is closed in no time ends no transaction
                    send(call, producer, consumer, records);
                    producer.flush();
                    patience = Duration.ZERO;
                    close = close.withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP);
                    break;
                }
                if (!copy(call, producer, consumer, records, done)) {
                    rewind(consumer);
                }
            }
        } finally {
            producer.close(patience);
            consumer.close(close);
        }
        return done.json();
    }

    private static void send(Driver.Call call, KafkaProducer<byte[], byte[]> producer, KafkaConsumer<byte[], byte[]> consumer,
        ConsumerRecords<byte[], byte[]> records) {
        producer.beginTransaction();
        Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> r : records) {
            producer.send(new ProducerRecord<>(call.text("to"), r.partition(), null, r.key(), r.value(), r.headers()));
            positions.put(new TopicPartition(r.topic(), r.partition()), new OffsetAndMetadata(r.offset() + 1));
        }
        producer.sendOffsetsToTransaction(positions, consumer.groupMetadata());
    }

    /** Copies records in a transaction, and says whether it was committed. A producer that may not abort either fails. */
    private static boolean copy(Driver.Call call, KafkaProducer<byte[], byte[]> producer, KafkaConsumer<byte[], byte[]> consumer,
        ConsumerRecords<byte[], byte[]> records, Copied done) {
        int every = call.number("abort_every", 0);
        try {
            send(call, producer, consumer, records);
            if (every == 0 || (done.commits + done.aborts + 1) % every != 0) {
                producer.commitTransaction();
                done.records += records.count();
                done.commits++;
                call.progress(done.records);
                return true;
            }
        } catch (KafkaException e) {
            System.err.println("a transaction is aborted: " + e);
        }
        producer.abortTransaction();
        done.aborts++;
        return false;
    }

    /** Goes back to where the last transaction that was committed has ended. */
    private static void rewind(KafkaConsumer<byte[], byte[]> consumer) {
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
        for (TopicPartition partition : consumer.assignment()) {
            OffsetAndMetadata at = committed.get(partition);
            if (at == null) {
                consumer.seekToBeginning(List.of(partition));
            } else {
                consumer.seek(partition, at);
            }
        }
    }
}
