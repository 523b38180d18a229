import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The Java consumer as a member of a group; what it has read is committed after each poll. */
final class MemberOps {
    private MemberOps() { }

    private static KafkaConsumer<byte[], byte[]> connect(Driver.Call call) {
        Properties p = new Properties();
        p.put("bootstrap.servers", call.text("bootstrap"));
        p.put("group.id", call.text("group"));
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", "earliest");
        if (call.text("protocol").equals("consumer")) {
            p.put("group.protocol", "consumer"); // the server says how long a session is
            p.put("metadata.max.age.ms", 1000); // a new topic that matches a pattern
            if (!call.text("assignor").isEmpty()) {
                p.put("group.remote.assignor", call.text("assignor"));
            }
        } else {
            p.put("session.timeout.ms", call.number("session_ms", 0));
            p.put("heartbeat.interval.ms", call.number("session_ms", 0) / 10);
        }
        if (!call.text("instance_id").isEmpty()) {
            p.put("group.instance.id", call.text("instance_id"));
        }
        p.put("reconnect.backoff.max.ms", 200);
        return new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static JsonNode member(Driver.Call call) throws Exception {
        ArrayNode records = Driver.JSON.createArrayNode();
        int count = call.number("count", 0);
        int most = call.number("commit", 0);
        Map<TopicPartition, OffsetAndMetadata> first = new HashMap<>(); // the positions after the first so many records
        KafkaConsumer<byte[], byte[]> consumer = connect(call);
        CloseOptions close = CloseOptions.timeout(Duration.ofSeconds(10));
        try {
            if (call.text("pattern").isEmpty()) {
                consumer.subscribe(List.of(call.text("topic")), new Seeker(consumer, call));
            } else {
                consumer.subscribe(new SubscriptionPattern(call.text("pattern")), new Seeker(consumer, call));
            }
            while (count > 0 ? records.size() < count : !call.stopped().get()) {
                Map<TopicPartition, OffsetAndMetadata> read = new HashMap<>();
                for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(200))) {
                    if (count == 0 || records.size() < count) {
                        records.add(ConsumerOps.json(r));
                        read.put(new TopicPartition(r.topic(), r.partition()), new OffsetAndMetadata(r.offset() + 1));
                        if (records.size() <= most) {
                            first.put(new TopicPartition(r.topic(), r.partition()), new OffsetAndMetadata(r.offset() + 1));
                        }
                    }
                }
                if (read.isEmpty()) {
                    continue;
                }
                if (most == 0) {
                    commit(consumer, read);
                } else if (records.size() >= most && !first.isEmpty()) { // once, when so many were read
                    commit(consumer, first);
                    first.clear();
                }
                call.progress(records.size());
            }
            if (call.args().path("die").asBoolean()) {
                close = close.withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP);
            }
        } finally {
            consumer.close(close);
        }
        return records;
    }

    /** Moves each partition to where the options say, the first time that the member is given it. */
    private record Seeker(KafkaConsumer<byte[], byte[]> consumer, Driver.Call call, Set<TopicPartition> given) implements ConsumerRebalanceListener {
        Seeker(KafkaConsumer<byte[], byte[]> consumer, Driver.Call call) {
            this(consumer, call, new HashSet<>());
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) { }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            long at = call.args().path("seek_at").asLong();
            for (TopicPartition partition : partitions) {
                if (!given.add(partition)) {
                    continue;
                }
                switch (call.text("seek")) {
                    case "beginning" -> consumer.seekToBeginning(List.of(partition));
                    case "offset" -> consumer.seek(partition, at);
                    case "time" -> consumer.seek(partition, consumer.offsetsForTimes(Map.of(partition, at)).get(partition).offset());
                    default -> { }
                }
            }
        }
    }

    /** A commit that fails is made good by the next: it is of later offsets, or the partitions are another's by then. */
    private static void commit(KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, OffsetAndMetadata> read) {
        try {
            consumer.commitSync(read);
        } catch (CommitFailedException | RebalanceInProgressException | RetriableException e) {
            System.err.println("a commit failed: " + e);
        }
    }
}
