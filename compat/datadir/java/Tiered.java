import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A topic with segments in remote storage; the server must have one (RemoteFiles). */
final class Tiered {
    private Tiered() { }

    /** Writes 100 records, ten a segment, and waits until the oldest segments are in remote storage only. */
    static void fill(String address, String topic) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", address);
        p.put("key.serializer", ByteArraySerializer.class.getName());
        p.put("value.serializer", ByteArraySerializer.class.getName());
        try (Admin admin = Admin.create(p)) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1).configs(Map.of("remote.storage.enable", "true", "retention.ms", "-1",
                "local.retention.ms", "1000", "segment.ms", "600000")))).all().get();
            try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p)) {
                for (int i = 0; i < 100; i++) {
                    producer.send(new ProducerRecord<>(topic, 0, 1_700_000_000_000L + i * 61_000L, Load.bytes("k" + i), Load.bytes("v" + i))).get();
                }
            }
            for (long end = System.currentTimeMillis() + 90_000; offset(admin, topic, new OffsetSpec.EarliestLocalSpec()) < 50;) {
                if (System.currentTimeMillis() > end) {
                    throw new IllegalStateException("the segments of " + topic + " are still in the log directory");
                }
                Thread.sleep(100);
            }
        }
    }

    static long earliest(String address, String topic) throws Exception {
        try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", address))) {
            return offset(admin, topic, OffsetSpec.earliest());
        }
    }

    private static long offset(Admin admin, String topic, OffsetSpec which) throws Exception {
        TopicPartition tp = new TopicPartition(topic, 0);
        return admin.listOffsets(Map.of(tp, which)).partitionResult(tp).get().offset();
    }
}
